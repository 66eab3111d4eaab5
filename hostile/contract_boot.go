package hostile

// Boot is a contract check beyond the ten: boot otherwise than ordered.
var Boot = register(Attempt{
	Step:     0,
	Name:     "boot",
	Title:    "boot otherwise than ordered",
	Tries:    "the host compares the flags and the OCI configuration of the running sandbox with what the runner ordered",
	Expected: "in force: what the runner ordered, and nothing beside it",
	Why:      "a program in the runtime's place that calls the real one with a flag more, or with a hook in the bundle, lowers a wall that no attempt may reach",
	Routes: []Route{
		{Name: "flags", Title: "flags of the sandbox's and the gofer's process", Inside: false},
		{Name: "container", Title: "fields of the container's OCI runtime configuration", Inside: false},
	},
})
