# Proves which ports of other hosts are in reach from this one, and how large packets get there: all at once, in one process.
# NONCE: of the run. ADDRESS: this host's own, from which it asks. SECONDS_EACH: how long a target may stay silent.
# TARGETS: one a line,
#   tcp ADDRESS PORT ours   listen.sh is there: its answer is wanted
#   tcp ADDRESS PORT any    a program is there: a connection is enough
#   udp ADDRESS PORT SIZE   listen.sh is there: packets of up to SIZE bytes, IP header included, are to get there and back
# Prints a line for each, `PROTOCOL ADDRESS PORT OUTCOME REST`, then `done`. Outcomes: `open`, for udp with the largest size
# that came back; `refused`; `silent`; `stranger` (somebody else answered); `failed` with the reason.
# shellcheck shell=sh disable=SC2016 # perl's variables
set -eu
printf '%s\n' "$NONCE" "$ADDRESS" "$SECONDS_EACH" "$TARGETS" | perl -e '
  use strict;
  use Errno; use Fcntl; use POSIX (); use Socket;

  my ($nonce, $address, $patience, @lines) = map { s/\s+$//r } <STDIN>;
  my $second = POSIX::sysconf(POSIX::_SC_CLK_TCK());
  sub now { (POSIX::times())[0] / $second }
  my $own = pack_sockaddr_in(0, inet_aton($address) // die "not an address: $address\n");
  my $ask = "k8sup ask $nonce ";
  my $answer = "k8sup here $nonce ";
  # IP and UDP headers.
  my $headers = 28;
  # What links and tunnels are known to let through.
  my @usual = (8900, 4000, 1500, 1492, 1480, 1476, 1454, 1450, 1440, 1420, 1412, 1400, 1380, 1360, 1300, 1280, 1200, 1000, 576);

  my @waiting;
  for (grep { length } @lines) {
    my ($protocol, $to, $port, $how) = split;
    push @waiting, { name => "$protocol $to $port", tcp => $protocol eq "tcp", how => $how, again => 0, why => "silent",
      to => pack_sockaddr_in($port, inet_aton($to) // die "not an address: $to\n") };
  }
  my @busy;

  sub told {
    my ($t, @words) = @_;
    print "$t->{name} @words\n";
    delete $t->{socket};
    $t->{told} = 1;
  }
  # What the kernel says about a way stands: who is to answer was there before anybody asked, and firewalls say no only
  # so often in a second.
  sub refused {
    my ($t, $error) = @_;
    $! = $error;
    told($t, $!{ECONNREFUSED} ? "refused" : "failed $!");
  }
  sub fresh {
    my ($t) = @_;
    socket(my $socket, PF_INET, $t->{tcp} ? SOCK_STREAM : SOCK_DGRAM, 0) or die "socket: $!\n";
    fcntl($socket, F_SETFL, O_NONBLOCK | fcntl($socket, F_GETFL, 0));
    # Nothing is left waiting when it is closed (SO_LINGER).
    setsockopt($socket, SOL_SOCKET, SO_LINGER, pack("ii", 1, 0)) if $t->{tcp};
    # Not to be cut into fragments on the way (IP_MTU_DISCOVER, IP_PMTUDISC_DO).
    setsockopt($socket, 0, 10, pack("i", 2)) if !$t->{tcp};
    $t->{socket} = $socket;
    bind($socket, $own) && (connect($socket, $t->{to}) || $!{EINPROGRESS}) and return 1;
    refused($t, $! + 0);
    return 0;
  }

  # --- tcp: each try is a connection of its own, so that a lost packet costs little ---------
  sub try_tcp {
    my ($t) = @_;
    $t->{again} = now() + 0.5;
    ($t->{connected}, $t->{heard}) = (0, "");
    fresh($t);
  }
  sub tcp_writable {
    my ($t) = @_;
    my $error = unpack("i", getsockopt($t->{socket}, SOL_SOCKET, SO_ERROR));
    return refused($t, $error) if $error;
    return told($t, "open") if $t->{how} eq "any";
    $t->{connected} = 1;
    # From here on silence is somebody else: a listener of ours answers at once.
    $t->{why} = "stranger";
    syswrite($t->{socket}, "$ask\n");
  }
  sub tcp_readable {
    my ($t) = @_;
    my $length = sysread($t->{socket}, my $heard, 256);
    return if !defined $length && $!{EAGAIN};
    $t->{heard} .= $heard if $length;
    return told($t, "open") if $t->{heard} eq "$answer\n";
    told($t, "stranger") if !$length || length $t->{heard} > length $answer;
  }

  # --- udp: sizes are asked for side by side, each until it comes back ----------------------
  sub try_udp {
    my ($t) = @_;
    $t->{again} = now() + 0.2;
    return if !$t->{socket} && !fresh($t);
    $t->{sizes} //= { 100 => 0, $t->{how} => 0 };
    # Small ones pass and the large one does not: which does?
    if (!$t->{narrow} && $t->{sizes}{100} && now() - $t->{first} > 0.5) {
      $t->{narrow} = 1;
      $t->{sizes}{$_} //= 0 for grep { $_ < $t->{how} } @usual;
    }
    for my $size (grep { !$t->{sizes}{$_} } keys %{$t->{sizes}}) {
      my $question = $ask . $size . " ";
      next if defined send($t->{socket}, $question . "." x ($size - $headers - length $question), 0);
      if ($!{EMSGSIZE}) {
        # The kernel has been told what the way allows (IP_MTU).
        my $way = unpack("i", getsockopt($t->{socket}, 0, 14));
        $t->{sizes}{$way} //= 0 if $way > 100 && $way < $t->{how};
      } elsif (!$!{EAGAIN} && !$!{ENOBUFS}) {
        return refused($t, $! + 0);
      }
    }
  }
  sub largest { my ($t) = @_; (sort { $b <=> $a } 0, grep { $t->{sizes}{$_} } keys %{$t->{sizes}})[0] }
  sub udp_readable {
    my ($t) = @_;
    while ($t->{socket}) {
      my $heard = "";
      if (!defined recv($t->{socket}, $heard, 65535, 0)) {
        return $!{EAGAIN} ? () : refused($t, $! + 0);
      }
      next if index($heard, $answer) != 0;
      # The length counts, not what the text says: an answer is as long as its question.
      my $size = $headers + length $heard;
      $t->{sizes}{$size} = 1 if exists $t->{sizes}{$size};
      if ($size == 100) { $t->{first} //= now() }
      told($t, "open $t->{how}") if $size == $t->{how};
    }
  }

  # --- all of them ---------------------------------------------------------------------------
  $| = 1;
  while (1) {
    while (@waiting && @busy < 200) {
      my $t = shift @waiting;
      $t->{until} = now() + $patience;
      push @busy, $t;
    }
    for my $t (@busy) {
      if (now() >= $t->{until}) {
        my $size = $t->{tcp} ? 0 : largest($t);
        told($t, $size ? "open $size" : $t->{why});
      } elsif (now() >= $t->{again}) {
        if (!$t->{tcp}) { try_udp($t) }
        elsif (!$t->{connected}) { try_tcp($t) }
      }
    }
    @busy = grep { !$_->{told} } @busy;
    last if !@busy && !@waiting;
    my ($read, $write) = ("", "");
    for (grep { $_->{socket} } @busy) {
      vec($_->{tcp} && !$_->{connected} ? $write : $read, fileno $_->{socket}, 1) = 1;
    }
    select($read, $write, undef, 0.05);
    for my $t (grep { $_->{socket} } @busy) {
      my $number = fileno $t->{socket};
      if (vec($write, $number, 1)) { tcp_writable($t) }
      elsif (vec($read, $number, 1)) { $t->{tcp} ? tcp_readable($t) : udp_readable($t) }
    }
    @busy = grep { !$_->{told} } @busy;
  }
  print "done\n";
'
