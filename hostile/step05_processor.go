package hostile

// Processor is step 5: spin the processor for ever.
var Processor = register(Attempt{
	Step:     5,
	Name:     "processor",
	Title:    "spin the processor for ever",
	Tries:    "spins in every way that might escape a cap on one process",
	Expected: "ended by the processor cap at 2 s of processor time over the whole job, as the host's accounting says",
	Why:      "which cap was recorded is the assertion: a run that ends on the wall clock means that the processor cap is not applied",
	Routes: []Route{
		{Name: "spinner", Title: "one process spins", Inside: true},
		{Name: "threads", Title: "threads spin", Inside: true},
		{Name: "forks", Title: "four forked processes spin", Inside: true},
		{Name: "relay", Title: "each child spins nearly to the cap of one process, then forks", Inside: true},
		{Name: "ignore-sigxcpu", Title: "spins and ignores SIGXCPU", Inside: true},
		{Name: "system-calls", Title: "spins in system calls", Inside: true},
		{Name: "limit-behind", Title: "one process spins with the cap over the job lifted", Inside: true},
	},
})
