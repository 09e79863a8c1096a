// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"
)

// drawing is a graph as a list of boxes and arrows, in the order in which they are drawn.
type drawing struct {
	boxes  []box
	arrows []arrow
	kinds  map[string]string
}

type box struct {
	id    string
	lines []string
	kind  bool
}

type arrow struct{ from, to, label string }

func draw(g *Graph) *drawing {
	d := &drawing{kinds: map[string]string{}}
	for _, roots := range [][]*Node{g.Controllers, g.Webhooks} {
		for _, root := range roots {
			d.node(root)
		}
	}
	return d
}

// node adds the box of a node and everything below it.
func (d *drawing) node(n *Node) (id string) {
	id = fmt.Sprintf("n%d", len(d.boxes))
	lines := []string{n.Name, n.Type}
	if n.Name == "" {
		lines = lines[1:]
	}
	for _, finalizer := range n.Finalizers {
		lines = append(lines, "finalizer "+finalizer)
	}
	if n.Webhook != "" {
		lines = append(lines, n.Webhook)
	}
	d.boxes = append(d.boxes, box{id: id, lines: lines})
	if n.Resource != nil {
		label := "reconciles"
		switch {
		case n.Webhook != "":
			label = "admits"
		case n.WritesStatus:
			label = "reconciles, writes status"
		}
		d.relate(id, label, *n.Resource)
	}
	for _, relation := range n.relations() {
		for _, kind := range relation.kinds {
			d.relate(id, relation.verb, kind)
		}
	}
	for _, nested := range n.Nodes {
		label := nested.Role
		if label == "Reconciler" {
			label = ""
		}
		at := len(d.arrows)
		d.arrows = append(d.arrows, arrow{from: id, label: label})
		d.arrows[at].to = d.node(nested)
	}
	return id
}

func (d *drawing) relate(from, label string, kind Kind) {
	name := kind.String()
	id, known := d.kinds[name]
	if !known {
		id = fmt.Sprintf("n%d", len(d.boxes))
		d.kinds[name] = id
		d.boxes = append(d.boxes, box{id: id, lines: []string{name}, kind: true})
	}
	d.arrows = append(d.arrows, arrow{from: from, to: id, label: label})
}

// Mermaid returns the graph as a Mermaid flowchart, which GitHub and GitLab draw in Markdown.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	d := draw(g)
	escape := strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ")
	for _, box := range d.boxes {
		lines := make([]string, len(box.lines))
		for i, line := range box.lines {
			lines[i] = escape.Replace(line)
		}
		shape := `%s["%s"]`
		if box.kind {
			shape = `%s(["%s"])`
		}
		fmt.Fprintf(&b, "  "+shape+"\n", box.id, strings.Join(lines, "<br/>"))
	}
	for _, a := range d.arrows {
		if a.label == "" {
			fmt.Fprintf(&b, "  %s --> %s\n", a.from, a.to)
		} else {
			fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", a.from, escape.Replace(a.label), a.to)
		}
	}
	return b.String()
}

// DOT returns the graph in the language of Graphviz. To make an SVG file of it, run
// "dot -Tsvg", or "go run trueup.dev/graph/svg@latest" without Graphviz.
func (g *Graph) DOT() string {
	var b strings.Builder
	// Graphviz knows the widths of Helvetica. The margin leaves room for the wider fonts that a viewer may choose instead.
	const font = `fontname="Helvetica,Arial,sans-serif"`
	b.WriteString("digraph reconcilers {\n  rankdir=LR\n  ordering=out\n" +
		"  node [shape=box, margin=\"0.45,0.08\", " + font + "]\n" +
		"  edge [fontsize=10, " + font + "]\n")
	d := draw(g)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")
	for _, box := range d.boxes {
		lines := make([]string, len(box.lines))
		for i, line := range box.lines {
			lines[i] = escape.Replace(line)
		}
		style := ""
		if box.kind {
			style = ", style=rounded"
		}
		fmt.Fprintf(&b, "  %s [label=\"%s\"%s]\n", box.id, strings.Join(lines, `\n`), style)
	}
	for _, a := range d.arrows {
		label := ""
		if a.label != "" {
			label = fmt.Sprintf(" [label=\"%s\"]", escape.Replace(a.label))
		}
		fmt.Fprintf(&b, "  %s -> %s%s\n", a.from, a.to, label)
	}
	b.WriteString("}\n")
	return b.String()
}
