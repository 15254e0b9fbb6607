# Proves that TCP ports are in reach: connected or refused is proof of the path, silence is not.
# TARGETS: `ADDRESS PORT accept|any` a line; accept wants a listener. perl-base is on every Debian.
# shellcheck disable=SC2016 # perl's variables
printf '%s\n' "$TARGETS" | perl -MIO::Socket::INET -e '
  my $bad = 0;
  for my $line (<STDIN>) {
    my ($address, $port, $want) = split " ", $line or next;
    my ($ok, $why);
    for (1 .. 3) {
      my $socket = IO::Socket::INET->new(PeerAddr => $address, PeerPort => $port, Proto => "tcp", Timeout => 3);
      $why = $socket ? "connected" : "$!";
      $ok = $socket || ($want eq "any" && $!{ECONNREFUSED});
      last if $ok;
      select undef, undef, undef, 0.5;
    }
    print "$address:$port $why\n";
    next if $ok;
    $bad = 1;
    print STDERR "$address:$port is out of reach from here: $why\n";
  }
  exit $bad;
'
