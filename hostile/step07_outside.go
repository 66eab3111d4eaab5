package hostile

// Outside is step 7: write outside the scratch folder.
var Outside = register(Attempt{
	Step:     7,
	Name:     "outside",
	Title:    "write outside the scratch folder",
	Tries:    "walks its own mount table and tries to write on every mount, where ownership would have allowed it",
	Expected: "EROFS at the read-only mount; where the profile keeps a pseudo file system writable, EACCES at the file ownership",
	Why:      "a root-owned folder answers EACCES and proves nothing about the mount, and one read-only mount proves one mount",
	Routes: []Route{
		{Name: "create", Title: "create a file on every mount", Inside: true},
		{Name: "append", Title: "append to a file on every mount", Inside: true},
		{Name: "truncate", Title: "truncate a file", Inside: true},
		{Name: "rename", Title: "rename a file", Inside: true},
		{Name: "link", Title: "make a hard link", Inside: true},
		{Name: "chmod", Title: "change a mode", Inside: true},
		{Name: "mknod", Title: "make a device node", Inside: true},
		{Name: "remount", Title: "remount read-write", Inside: true},
		{Name: "mount-over", Title: "mount a tmpfs over a folder", Inside: true},
		{Name: "unnamed-file", Title: "open a file without a name (O_TMPFILE)", Inside: true},
		{Name: "proc-sys", Title: "write a kernel setting under /proc/sys", Inside: true},
		{Name: "proc-mem", Title: "write read-only memory through /proc/self/mem", Inside: true},
		{Name: "xattr", Title: "set an extended attribute", Inside: true},
		{Name: "inputs-create", Title: "create a file among the inputs", Inside: true},
		{Name: "inputs-append", Title: "append to an input", Inside: true},
		{Name: "inputs-rename", Title: "rename an input", Inside: true},
		{Name: "inputs-chmod", Title: "change an input's mode", Inside: true},
		{Name: "inputs-remount", Title: "remount the inputs read-write", Inside: true},
		{Name: "pseudo", Title: "create a file on the pseudo file systems that stay writable", Inside: true},
	},
})
