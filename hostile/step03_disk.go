package hostile

// Disk is step 3: fill the disk.
var Disk = register(Attempt{
	Step:     3,
	Name:     "disk",
	Title:    "fill the disk",
	Tries:    "writes past the scratch quota in every way, writes where no writing is granted, floods its output and offers too large an artifact",
	Expected: "ENOSPC at the scratch quota at exactly the granted bytes; floods at the output bound, artifacts at the artifact bound",
	Why:      "a quota that is accounted on the host rather than on the mount lets the job fail while the host still loses the space",
	Routes: []Route{
		{Name: "large-file", Title: "write one large file", Inside: true},
		{Name: "small-files", Title: "write many small files", Inside: true},
		{Name: "fallocate", Title: "reserve space by fallocate", Inside: true},
		{Name: "mmap", Title: "fill a sparse file through a shared mapping", Inside: true},
		{Name: "unnamed-file", Title: "write a file without a name (O_TMPFILE)", Inside: true},
		{Name: "deleted-file", Title: "write a file that was deleted while open", Inside: true},
		{Name: "tmp", Title: "write to /tmp", Inside: true},
		{Name: "dev-shm", Title: "write to /dev/shm", Inside: true},
		{Name: "root", Title: "write to the root file system", Inside: true},
		{Name: "stdout-flood", Title: "flood standard output", Inside: true},
		{Name: "stderr-flood", Title: "flood standard error", Inside: true},
		{Name: "large-artifact", Title: "offer an artifact beyond its cap", Inside: true},
	},
})
