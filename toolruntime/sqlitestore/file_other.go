//go:build !unix

package sqlitestore

import "io/fs"

// names is how many names a file has; a system that does not say has one.
func names(fs.FileInfo) uint64 { return 1 }
