# Listens on ports of this host for the time of a proof, so that others can prove that they reach them.
# It answers only PEERS, and only those who know this run's NONCE; prove.sh asks. It goes into the background and is over
# when listen_end.sh says so, when the SSH connection that started it is gone, or after LIFE seconds.
# ADDRESS: where it listens. PEERS: an address a line. PORTS: `tcp|udp NUMBER` a line.
# Prints `bound|taken|failed PROTOCOL NUMBER REASON` a port, and `listener PID START` at the end.
# shellcheck shell=sh disable=SC2016 # perl's variables
set -eu
printf '%s\n' "$NONCE" "$ADDRESS" "$LIFE" "$PEERS" -- "$PORTS" | perl -e '
  use strict;
  use Errno; use Fcntl; use POSIX (); use Socket;

  my ($nonce, $address, $life, @rest) = map { s/\s+$//r } <STDIN>;
  my %peer; # by address
  while (@rest && (my $line = shift @rest) ne "--") { $peer{$line} = 1 }
  # Clock ticks since some moment of the past: a clock that is set does not matter.
  my $second = POSIX::sysconf(POSIX::_SC_CLK_TCK());
  sub now { (POSIX::times())[0] / $second }
  my $end = now() + $life;
  my $own = inet_aton($address) or die "not an address: $address\n";

  # The process of the SSH server that holds this connection.
  sub connection {
    my $pid = $$;
    while ($pid > 1) {
      open(my $file, "<", "/proc/$pid/stat") or return;
      my ($name, $parent) = <$file> =~ /\((.*)\) \S (\d+)/s or return;
      return $pid if $name =~ /^(sshd|dropbear)/;
      $pid = $parent;
    }
    return;
  }
  my $connection = connection();

  sub unblocked { fcntl($_[0], F_SETFL, O_NONBLOCK | fcntl($_[0], F_GETFL, 0)); $_[0] }
  my (%udp, %tcp, %talk); # by file number: sockets, and what was heard from whom until when
  for (grep { length } @rest) {
    my ($protocol, $port) = split;
    my $tcp = $protocol eq "tcp";
    my $bound = socket(my $socket, PF_INET, $tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
    setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1) if $tcp;
    # Answers carry the same mark as the questions: not to be cut into fragments (IP_MTU_DISCOVER, IP_PMTUDISC_DO).
    setsockopt($socket, 0, 10, pack("i", 2)) if !$tcp;
    $bound &&= bind($socket, pack_sockaddr_in($port, $own)) && (!$tcp || listen($socket, 128));
    if ($bound) {
      print "bound $protocol $port\n";
      ($tcp ? \%tcp : \%udp)->{fileno $socket} = unblocked($socket);
    } else {
      print $!{EADDRINUSE} ? "taken" : "failed", " $protocol $port $!\n";
    }
  }
  exit 0 if !%tcp && !%udp;

  $| = 1;
  pipe(my $ready, my $unready) or die "pipe: $!\n";
  defined(my $child = fork) or die "fork: $!\n";
  if ($child) {
    # Until it has a session of its own, what ends this one would end it, too.
    close $unready;
    <$ready>;
    open(my $file, "<", "/proc/$child/stat") or die "it has ended at once\n";
    my ($fields) = <$file> =~ /.*\) (.*)/s;
    print "listener $child ", (split " ", $fields)[19], "\n";
    exit 0;
  }
  # As `ss` shows it.
  $0 = "k8sup-listen";
  POSIX::setsid();
  chdir "/";
  open(STDIN, "<", "/dev/null"); open(STDOUT, ">", "/dev/null"); open(STDERR, ">", "/dev/null");
  close $ready;
  close $unready;
  $SIG{PIPE} = "IGNORE";
  # Nothing that comes over the network meets root.
  if ($> == 0) { $) = "65534 65534"; $( = 65534; $< = $> = 65534 }

  my $ask = "k8sup ask $nonce ";
  my $answer = "k8sup here $nonce ";
  sub known { my (undef, $from) = unpack_sockaddr_in($_[0]); $peer{inet_ntoa($from)} }
  # Another user may not signal it, which shows that it is there.
  sub connected { !$connection || kill(0, $connection) || $!{EPERM} }
  while (now() < $end && connected()) {
    my $wanted = "";
    vec($wanted, $_, 1) = 1 for keys %udp, keys %tcp, keys %talk;
    select(my $ready = $wanted, undef, undef, 0.5);
    for my $number (grep { vec($ready, $_, 1) } keys %udp) {
      my $from = recv($udp{$number}, my $heard, 65535, 0);
      next if !defined $from || !length $from || !known($from) || index($heard, $ask) != 0;
      # As long as the question.
      my $told = $answer . substr($heard, length $ask);
      send($udp{$number}, substr($told, 0, length $heard), 0, $from);
    }
    for my $number (grep { vec($ready, $_, 1) } keys %talk) {
      my $talk = $talk{$number};
      my $length = sysread($talk->{socket}, my $heard, 256);
      if (!$length) { delete $talk{$number}; next }
      $talk->{heard} .= $heard;
      syswrite($talk->{socket}, "$answer\n") if $talk->{heard} eq "$ask\n";
      delete $talk{$number} if length $talk->{heard} > 256;
    }
    for my $number (grep { vec($ready, $_, 1) } keys %tcp) {
      my $from = accept(my $socket, $tcp{$number}) or next;
      next if !known($from) || keys(%talk) > 500;
      $talk{fileno $socket} = { socket => unblocked($socket), heard => "", until => now() + 5 };
    }
    delete @talk{grep { $talk{$_}{until} < now() } keys %talk};
  }
'
