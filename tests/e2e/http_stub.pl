# A vendor's API for start scripts: perl http_stub.pl PORTFILE LOG CODES. Writes its port to PORTFILE, then for each request
# a line "METHOD PATH AUTHORIZATION BODY" to LOG, and what the client calls itself to LOG.agents. CODES is a file of
# "METHOD PATH-REGEX STATUS[,STATUS..] [LOCATION]" lines, read again each time (several: for the first, the second ... such request
# that LOG has, the last for all others); CODES.head holds further header lines; what stands in CODES.reply (else {}) is the body of answers, and by CODES.date seconds its clock is off. Python's own name is refused, as by what guards RunPod's API.
use strict;
use warnings;
use IO::Socket::INET;
use POSIX 'strftime';

my ($portfile, $log, $codes) = @ARGV;

sub nth {
	my ($method, $re, @statuses) = @_;
	my $n = 0;
	if (open my $l, '<', $log) { while (<$l>) { $n++ if /^$method $re / } close $l }
	return $statuses[$n < $#statuses ? $n : $#statuses];
}

my $server = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "listen: $!";
open my $p, '>', "$portfile.new" or die;
print $p $server->sockport;
close $p;
rename "$portfile.new", $portfile;
$SIG{PIPE} = 'IGNORE';
while (my $c = $server->accept) {
	my ($method, $path) = split / /, (<$c> // next);
	my ($length, $auth, $agent) = (0, '-', '-');
	while (defined(my $line = <$c>)) {
		$line =~ s/\r?\n$//;
		last if $line eq '';
		$length = $1 if $line =~ /^content-length:\s*(\d+)/i;
		$agent = $1 if $line =~ /^user-agent:\s*(.*)/i;
		$auth = $1 if $line =~ /^authorization:\s*(.*)/i;
	}
	my $body = '';
	read $c, $body, $length if $length;
	my ($status, $location) = (404, '');
	open my $f, '<', $codes or die;
	while (<$f>) {
		my ($m, $re, $s, $to) = split;
		if ($m eq $method && $path =~ /^$re$/) { $status = nth($m, $re, split /,/, $s); $location = "Location: $to\r\n" if $to; last }
	}
	close $f;
	$status = 403 if $agent =~ /^Python-urllib/;
	open my $a, '>>', "$log.agents" or die;
	print $a "$agent\n";
	close $a;
	open my $l, '>>', $log or die;
	print $l "$method $path $auth $body\n";
	close $l;
	my $text = $status == 204 ? '' : '{}';
	if ($text && open my $r, '<', "$codes.reply") { local $/; $text = <$r>; close $r }
	my $date = '';
	if (open my $d, '<', "$codes.date") { $date = strftime("Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime(time + <$d>)); close $d }
	if (open my $h, '<', "$codes.head") { while (<$h>) { chomp; $date .= "$_\r\n" } close $h }
	print $c "HTTP/1.1 $status X\r\n$date${location}Content-Length: " . length($text) . "\r\nConnection: close\r\n\r\n$text";
	close $c;
}
