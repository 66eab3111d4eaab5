package hostile

// Census is a contract check beyond the ten: count the entry points.
var Census = register(Attempt{
	Step:     0,
	Name:     "census",
	Title:    "count the entry points",
	Tries:    "tries each of the machine's system call numbers in a throwaway child",
	Expected: "in force at the entry-point filter: the let-through calls are exactly those of the profile's allow list",
	Why:      "a change in what is let through is drift, whatever the file says",
	Routes: []Route{
		{Name: "all", Title: "every system call number", Inside: true},
		{Name: "by-signal", Title: "the numbers of which an EPERM tells nothing, where the filter answers by a signal", Inside: true},
	},
})
