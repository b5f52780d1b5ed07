//go:build !cgo

package sqlitestore

// SQLite is C code. This line is what the compiler says first where it may not build
// any, which is why this file is the first: set CGO_ENABLED=1 and install a C
// compiler. Package pgstore needs neither.
var _ = this_package_needs_cgo__set_CGO_ENABLED_1_and_install_a_C_compiler
