// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Text returns the graph as a tree, one line for each reconciler: its role, its name, its Go type, and what it reads
// and writes.
func (g *Graph) Text() string {
	var b strings.Builder
	for _, root := range g.Controllers {
		root.text(&b, "", "")
	}
	for _, root := range g.Webhooks {
		root.text(&b, "", "")
	}
	return b.String()
}

func (n *Node) text(b *strings.Builder, first, rest string) {
	fmt.Fprintf(b, "%s%s\n", first, n)
	for i, nested := range n.Nodes {
		if i < len(n.Nodes)-1 {
			nested.text(b, rest+"├─ ", rest+"│  ")
		} else {
			nested.text(b, rest+"└─ ", rest+"   ")
		}
	}
}

// String returns one line about the reconciler.
func (n *Node) String() string {
	title := n.Title()
	if n.Role != "" && n.Role != "Reconciler" {
		title = n.Role + ": " + title
	}
	return strings.Join(append([]string{title}, n.Facts()...), " · ")
}

// Title returns the name and the Go type of the reconciler.
func (n *Node) Title() string {
	switch {
	case n.Name == "":
		return n.Type
	case strings.HasSuffix(n.Type, "."+n.Name):
		return n.Type
	}
	return n.Name + " (" + n.Type + ")"
}

// Facts returns what the reconciler reads and writes, without that of nested reconcilers: texts such as "owns Service".
func (n *Node) Facts() []string {
	var facts []string
	if n.Webhook != "" {
		facts = append(facts, "webhook "+n.Webhook)
	}
	if n.Resource != nil {
		facts = append(facts, "for "+n.Resource.String())
	}
	for _, relation := range n.relations() {
		if len(relation.kinds) > 0 {
			facts = append(facts, relation.verb+" "+join(relation.kinds))
		}
	}
	if n.WritesStatus {
		facts = append(facts, "writes status")
	}
	if len(n.Finalizers) > 0 {
		facts = append(facts, "finalizer "+strings.Join(n.Finalizers, ", "))
	}
	if n.Resource != nil && !n.SetUp {
		facts = append(facts, "not set up, watches are unknown")
	}
	return facts
}

// relation is a relation of a reconciler to kinds.
type relation struct {
	verb  string
	kinds []Kind
}

// relations returns the relations of the node. Some of them may have no kinds.
func (n *Node) relations() []relation {
	return []relation{
		{"owns", n.Owns}, {"writes", n.Writes}, {"tracks", n.Tracks}, {"watches", n.Watches}, {"reads", n.Reads},
	}
}

func join(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.String()
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
