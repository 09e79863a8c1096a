// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/objects/nilcheck"
)

// Graph is the reconcilers of a program.
type Graph struct {
	// Controllers are the trees of the controllers, in the order in which they are added.
	Controllers []*Node `json:"controllers"`
	// Webhooks are the webhooks, sorted by URL path.
	Webhooks []*Node `json:"webhooks,omitempty"`
}

// Of returns the graph of root reconcilers, without calling any of their functions. It ignores nil.
//
// The watches that Setup functions register are known after SetupWithManager was called, see [Node.SetUp]. To get them
// without a cluster, use [Record].
func Of(reconcilers ...any) *Graph {
	g := &Graph{Controllers: []*Node{}}
	for _, reconciler := range reconcilers {
		if nilcheck.IsNil(reconciler) {
			continue
		}
		g.Controllers = append(g.Controllers, describe(reconciler, runtime.NewScheme()))
	}
	return g
}

// describe describes a root. The scheme is used if the root has none. A root may wrap another one, as the root of an
// observed controller does.
func describe(reconciler any, scheme *runtime.Scheme) *Node {
	for {
		wrapper, ok := reconciler.(interface{ Unwrap() reconcile.Reconciler })
		if !ok {
			break
		}
		reconciler = wrapper.Unwrap()
	}
	n := newNode(reconciler, nil, "", scheme)
	n.describe()
	return n
}

// All returns all nodes: controllers first, each before the nodes that it contains.
func (g *Graph) All() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, roots := range [][]*Node{g.Controllers, g.Webhooks} {
			for _, root := range roots {
				if !root.each(yield) {
					return
				}
			}
		}
	}
}

func (n *Node) each(yield func(*Node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, nested := range n.Nodes {
		if !nested.each(yield) {
			return false
		}
	}
	return true
}

// Find returns the node of a step. Path is the names of the steps from the root, joined with dots, as in errors and
// events. If the reconciler of the step does not describe itself, Find returns the innermost reconciler around it that
// does. It returns nil for a path of another program.
func (g *Graph) Find(path string) *Node {
	var found *Node
	for n := range g.All() {
		if leadsTo(n.Path, path) && (found == nil || strings.Count(n.Path, ".") >= strings.Count(found.Path, ".")) {
			found = n
		}
	}
	return found
}

// leadsTo reports whether path is the path of a node, or of a step below it. An element "*" of the path of the node
// matches any element.
func leadsTo(node, path string) bool {
	if node == "" {
		return false
	}
	for rest := node; rest != ""; {
		if after, ok := strings.CutPrefix(rest, "*"); ok && (after == "" || after[0] == '.') {
			end := strings.IndexByte(path, '.')
			if end < 0 {
				end = len(path)
			}
			rest, path = after, path[end:]
			continue
		}
		if path == "" || path[0] != rest[0] {
			return false
		}
		rest, path = rest[1:], path[1:]
	}
	return path == "" || path[0] == '.'
}
