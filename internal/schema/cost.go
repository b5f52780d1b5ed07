package schema

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The limits of a value.
const (
	MaxDepth  = 32    // of a value, whose root is at depth 0
	MaxValues = 65536 // values in a tree: more than a document of 64 KiB can have
)

const (
	// budget is in units of about half a microsecond.
	budget = 1 << 20
	// textPerUnit is how many steps of a pattern one unit pays for.
	textPerUnit = 32
	// maxInPlace bounds chains of $ref, allOf and the like on one value.
	maxInPlace = 64
	saturated  = 1 << 40
)

// A cost is the most that one value at some depth can make the validator do.
type cost struct {
	node uint64 // units for the value
	text uint64 // pattern steps for each byte of it
}

func (c cost) plus(d cost) cost {
	return cost{min(c.node+d.node, saturated), min(c.text+d.text, saturated)}
}

func (c cost) max(d cost) cost { return cost{max(c.node, d.node), max(c.text, d.text)} }

// A costTable has the cost by depth of the value. Shared subschemas make it
// grow with depth, up to doubling at each level.
type costTable [MaxDepth + 2]cost

// check returns the rule that forbids even to start on v, or "".
func (t *costTable) check(v any) string {
	s := sizing{table: t}
	s.add(v, 0)
	if s.rule == "" && s.units > budget {
		return RuleTooComplex
	}
	return s.rule
}

type sizing struct {
	table  *costTable
	units  uint64
	values int
	rule   string
}

func (s *sizing) add(v any, depth int) {
	switch s.values++; {
	case s.rule != "":
		return
	case depth > MaxDepth:
		s.rule = RuleTooDeep
		return
	case s.values > MaxValues:
		s.rule = RuleTooLarge
		return
	}
	s.units = min(s.units+s.table[depth].node, saturated)
	switch v := v.(type) {
	case string:
		s.text(v, depth)
	case []any:
		for _, x := range v {
			if s.add(x, depth+1); s.rule != "" {
				return
			}
		}
	case map[string]any:
		for key, x := range v {
			s.text(key, depth+1)
			if s.add(x, depth+1); s.rule != "" {
				return
			}
		}
	}
}

func (s *sizing) text(t string, depth int) {
	steps := min(s.table[depth].text, saturated/(1<<20))
	s.units = min(s.units+steps*uint64(min(len(t), 1<<30))/textPerUnit, saturated)
}

// A vertex is a subschema and what it applies: to the same value, to one child
// each, to any child at once, and to the names of children.
type vertex struct {
	own, child cost
	inPlace    []*jsonschema.Schema
	either     []*jsonschema.Schema
	every      []*jsonschema.Schema
	names      *jsonschema.Schema
	chain      int // longest way on through inPlace
}

type graph struct {
	vertices map[*jsonschema.Schema]*vertex
	found    []*jsonschema.Schema
	order    []*jsonschema.Schema // an inPlace target comes before its source
}

// graphOf finds the subschemas that root leads to.
func graphOf(root *jsonschema.Schema) *graph {
	g := &graph{vertices: map[*jsonschema.Schema]*vertex{}}
	for queue := []*jsonschema.Schema{root}; len(queue) > 0; {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if _, seen := g.vertices[s]; s == nil || seen {
			continue
		}
		x := vertexOf(s)
		g.vertices[s] = x
		g.found = append(g.found, s)
		queue = append(queue, x.inPlace...)
		queue = append(queue, x.either...)
		queue = append(queue, x.every...)
		queue = append(queue, x.names)
	}
	return g
}

// costsOf bounds the work of validation, and refuses references that come back
// to the same value, which would never end.
func costsOf(root *jsonschema.Schema) (*costTable, error) {
	g := graphOf(root)
	marks := map[*jsonschema.Schema]int{}
	for _, s := range g.found {
		if err := g.visit(s, marks); err != nil {
			return nil, err
		}
	}
	return g.table(root), nil
}

const (
	unvisited = iota
	visiting
	visited
)

func (g *graph) visit(s *jsonschema.Schema, marks map[*jsonschema.Schema]int) error {
	switch marks[s] {
	case visiting:
		return errorAt(fragment(s.Location), "a $ref leads back to itself on the same value")
	case visited:
		return nil
	}
	marks[s] = visiting
	x := g.vertices[s]
	for _, target := range x.inPlace {
		if err := g.visit(target, marks); err != nil {
			return err
		}
		x.chain = max(x.chain, 1+g.vertices[target].chain)
	}
	if x.chain > maxInPlace {
		return errorAt(fragment(s.Location), "chain of references too long")
	}
	marks[s] = visited
	g.order = append(g.order, s)
	return nil
}

func (g *graph) table(root *jsonschema.Schema) *costTable {
	var table costTable
	names := map[*jsonschema.Schema]cost{} // cost at depth 0
	below := map[*jsonschema.Schema]cost{} // cost one level up from the one in work
	for depth := range table {
		level := make(map[*jsonschema.Schema]cost, len(g.order))
		for _, s := range g.order {
			x := g.vertices[s]
			sum := x.own
			if depth > 0 {
				sum = cost{}
			}
			for _, target := range x.inPlace {
				sum = sum.plus(level[target])
			}
			if depth == 1 {
				sum = sum.plus(x.child)
				if x.names != nil { // twice: extension.checkNames
					sum = sum.plus(names[x.names]).plus(names[x.names])
				}
			}
			if depth > 0 {
				sum = sum.plus(x.children(below))
			}
			level[s] = sum
		}
		if depth == 0 {
			names = level
		}
		table[depth], below = level[root], level
	}
	return &table
}

func (x *vertex) children(costs map[*jsonschema.Schema]cost) cost {
	var most, sum cost
	for _, s := range x.either {
		most = most.max(costs[s])
	}
	for _, s := range x.every {
		sum = sum.plus(costs[s])
	}
	return sum.plus(most)
}
