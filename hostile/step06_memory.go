package hostile

// Memory is step 6: allocate memory until the host suffers.
var Memory = register(Attempt{
	Step:     6,
	Name:     "memory",
	Title:    "allocate memory until the host suffers",
	Tries:    "allocates in every way that the kernel accounts differently, touching each page",
	Expected: "ended by the memory cap at the job's own memory cgroup",
	Why:      "a job cannot observe the host choosing to kill somebody else's process, so the host half is the assertion",
	Routes: []Route{
		{Name: "anonymous", Title: "anonymous memory", Inside: true},
		{Name: "memfd", Title: "memory files", Inside: true},
		{Name: "page-cache", Title: "scratch and page cache beside anonymous memory", Inside: true},
		{Name: "stacks", Title: "many thread stacks", Inside: true},
		{Name: "pipes", Title: "pipe buffers beside anonymous memory", Inside: true},
		{Name: "runtime-heap", Title: "growth of the runtime's own heap", Inside: true},
	},
})
