package payments

// Faults lists all faults.
func Faults() []Fault { return faults }
