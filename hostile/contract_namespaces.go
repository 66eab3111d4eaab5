package hostile

// Namespaces is a contract check beyond the ten: share a namespace.
var Namespaces = register(Attempt{
	Step:     0,
	Name:     "namespaces",
	Title:    "share a namespace",
	Tries:    "the host compares the namespaces of the sandbox with its own",
	Expected: "in force: own PID, mount, network, IPC and UTS namespaces",
	Why:      "what is shared is reachable",
	Routes: []Route{
		{Name: "own-five", Title: "compare the five namespaces on the host", Inside: false},
		{Name: "inside", Title: "see no process, link or name of the host from inside", Inside: true},
	},
})
