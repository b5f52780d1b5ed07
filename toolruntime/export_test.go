package toolruntime

import "github.com/toolruntime/toolruntime-go/internal/engine"

// TestingOnlyWrapEngine puts something between a store and its database.
func TestingOnlyWrapEngine(s *Store, wrap func(engine.Engine) engine.Engine) {
	s.engine = wrap(s.engine)
}

// TestingOnlyTransitions is the table of allowed changes of state.
func TestingOnlyTransitions() map[string][]string {
	m := map[string][]string{}
	for from, all := range transitions {
		m[string(from)] = []string{}
		for _, to := range all {
			m[string(from)] = append(m[string(from)], string(to))
		}
	}
	return m
}
