package hostile

// Privileges is a contract check beyond the ten: have a capability.
var Privileges = register(Attempt{
	Step:     0,
	Name:     "privileges",
	Title:    "have a capability",
	Tries:    "reads its capability sets and no_new_privs, runs a set-uid program of root and makes a user namespace",
	Expected: "in force: five empty capability sets and no_new_privs; the set-uid program runs as nobody; no user namespace, by EPERM at the entry-point filter",
	Why:      "one capability reopens several walls at once",
	Routes: []Route{
		{Name: "capabilities", Title: "read the five capability sets", Inside: true},
		{Name: "no-new-privs", Title: "read no_new_privs and run a set-uid program of root", Inside: true},
		{Name: "set-uid-behind", Title: "run a set-uid program of root where the runtime heeds the bit", Inside: true},
		{Name: "user-namespace", Title: "make a user namespace, or any other, by clone", Inside: true},
		{Name: "user-namespace-unshare", Title: "make a user namespace by unshare", Inside: true},
	},
})
