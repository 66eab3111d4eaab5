package hostile

// Metadata is step 9: reach the cloud metadata address.
var Metadata = register(Attempt{
	Step:     9,
	Name:     "metadata",
	Title:    "reach the cloud metadata address",
	Tries:    "connects to the metadata addresses of the clouds, with the entry-point filter's socket rule lifted so that the route table is asked",
	Expected: "ENETUNREACH at the route table, and zero packets at the host's counter",
	Why:      "the address is reachable by default on every cloud and is refused by another rule than the internet",
	Routes: []Route{
		{Name: "aws", Title: "169.254.169.254 over IPv4", Inside: true},
		{Name: "aws-ipv6", Title: "fd00:ec2::254 over IPv6", Inside: true},
		{Name: "mapped", Title: "::ffff:169.254.169.254", Inside: true},
		{Name: "ecs", Title: "169.254.170.2, task credentials", Inside: true},
		{Name: "alibaba", Title: "100.100.100.200", Inside: true},
		{Name: "azure", Title: "168.63.129.16", Inside: true},
		{Name: "oracle", Title: "192.0.0.192", Inside: true},
		{Name: "by-name", Title: "by name, over a name server", Inside: true},
		{Name: "proxy", Title: "through the proxy that a variable names", Inside: true},
	},
})
