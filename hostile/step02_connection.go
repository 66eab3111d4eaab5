package hostile

// Connection is step 2: open a connection out.
var Connection = register(Attempt{
	Step:     2,
	Name:     "connection",
	Title:    "open a connection out",
	Tries:    "makes sockets of every family and tries to reach an address that is used for nothing else in the run",
	Expected: "EPERM (or the action that the profile states) at the entry-point filter, and zero packets at the host's counter",
	Why:      "the inside half proves that the request was refused, the host half that nothing left by any other route; only the second is the authority",
	Routes: []Route{
		{Name: "tcp4", Title: "connect over IPv4 TCP", Inside: true},
		{Name: "tcp6", Title: "connect over IPv6 TCP", Inside: true},
		{Name: "udp", Title: "send a datagram over UDP", Inside: true},
		{Name: "dns", Title: "ask a name server over UDP port 53", Inside: true},
		{Name: "icmp", Title: "send an echo request over an ICMP socket", Inside: true},
		{Name: "raw", Title: "send over a raw IPv4 socket", Inside: true},
		{Name: "packet", Title: "send a frame over AF_PACKET", Inside: true},
		{Name: "vsock", Title: "connect over AF_VSOCK", Inside: true},
		{Name: "unix-abstract", Title: "connect to an abstract unix socket of a host listener", Inside: true},
		{Name: "unix-path", Title: "connect to a unix socket by path", Inside: true},
		{Name: "netlink", Title: "open a routing netlink socket", Inside: true},
		{Name: "io-uring", Title: "make a socket through io_uring", Inside: true},
		{Name: "inherited-descriptor", Title: "look for sockets that were left open", Inside: true},
	},
})
