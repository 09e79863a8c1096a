// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"
	"strings"

	"trueup.dev/graph"
	"trueup.dev/observe/recorder"
)

// Reconciler is a reconciler of a controller, or a step that no reconciler describes.
type Reconciler struct {
	// Depth is 0 for the root. A reconciler follows the reconciler that contains it.
	Depth int    `json:"depth"`
	Name  string `json:"name"`
	// Role is the position within the reconciler that contains it, and Type the Go type. Both are empty for a step.
	Role string `json:"role,omitempty"`
	Type string `json:"type,omitempty"`
	// Facts are what the reconciler reads and writes, for example "owns Service".
	Facts []string `json:"facts,omitempty"`
	// Stats are nil if no step of the reconciler was executed, or if it is not a step.
	Stats *recorder.StepStats `json:"stats,omitempty"`
	// IsStep reports whether the reconciler is a step.
	IsStep bool `json:"isStep"`
}

// wiring returns the tree of the reconcilers of a controller with their outcomes and costs. Without a root, these are
// the executed steps.
func wiring(root *graph.Node, steps []recorder.StepStats) []*Reconciler {
	t := &wiringTree{steps: steps, used: make([]bool, len(steps))}
	if root != nil {
		t.node(root, 0, nil)
		for i := range steps {
			t.used[i] = t.used[i] || t.isPosition(steps[i].Path)
		}
	}
	for i, s := range steps {
		if !t.used[i] {
			t.insert(s)
		}
	}
	rows := make([]*Reconciler, len(t.rows))
	for i := range t.rows {
		rows[i] = &t.rows[i].Reconciler
	}
	return rows
}

// wiringTree collects the rows of a tree.
type wiringTree struct {
	steps []recorder.StepStats
	used  []bool // the steps that belong to a row
	rows  []*row
}

type row struct {
	Reconciler
	path []string
}

// node adds a node and the nodes that it contains. Above is the path of the node that contains it.
func (t *wiringTree) node(n *graph.Node, depth int, above []string) {
	r := &row{path: above}
	if n.Path != "" {
		r.path = strings.Split(n.Path, ".")
	}
	r.Depth, r.Name, r.Role, r.Facts = depth, n.Name, n.Role, n.Facts()
	if r.Type = n.Type; r.Name == "" {
		r.Name = n.Type
	}
	if strings.HasSuffix(n.Type, "."+n.Name) {
		r.Name, r.Type = n.Name, n.Type[:len(n.Type)-len(n.Name)-1]
	}
	r.IsStep = !slices.Equal(r.path, above)
	t.rows = append(t.rows, r)
	for i, s := range t.steps {
		if r.IsStep && !t.used[i] && len(s.Path) == len(r.path) && leads(r.path, s.Path) {
			t.used[i], r.Stats = true, together(r.Stats, s)
		}
	}
	for _, nested := range n.Nodes {
		t.node(nested, depth+1, r.path)
	}
}

// isPosition reports whether a step is only the position of a reconciler in another one, which has a step of its own.
func (t *wiringTree) isPosition(path []string) bool {
	return slices.ContainsFunc(t.rows, func(r *row) bool {
		return len(r.path) > len(path) && leads(r.path[:len(path)], path)
	})
}

// insert adds a step after the row of the innermost step that contains it, and after the steps of that row.
func (t *wiringTree) insert(s recorder.StepStats) {
	at := -1
	for i, r := range t.rows {
		if leads(r.path, s.Path) && (at < 0 || len(r.path) >= len(t.rows[at].path)) {
			at = i
		}
	}
	r := &row{path: s.Path}
	r.Name, r.Stats, r.IsStep = s.Name(), &s, true
	if at < 0 {
		t.rows = append(t.rows, r)
		return
	}
	r.Depth = t.rows[at].Depth + 1
	for at++; at < len(t.rows) && t.rows[at].Depth >= r.Depth; {
		at++
	}
	t.rows = slices.Insert(t.rows, at, r)
}

// leads reports whether a path is the path of a row or of a step below it. An element "*" of the row matches any
// element.
func leads(row, path []string) bool {
	if len(row) == 0 || len(row) > len(path) {
		return false
	}
	for i := range row {
		if row[i] != "*" && row[i] != path[i] {
			return false
		}
	}
	return true
}

// together adds the outcomes and costs of a step to the outcomes and costs of other items of the same reconciler.
func together(all *recorder.StepStats, s recorder.StepStats) *recorder.StepStats {
	if all == nil {
		return &s
	}
	all.Runs += s.Runs
	all.Failures += s.Failures
	all.Halts += s.Halts
	all.Duration += s.Duration
	all.Max = max(all.Max, s.Max)
	all.Recent += s.Recent
	all.RecentFailures += s.RecentFailures
	if s.LastFailed.After(all.LastFailed) {
		all.LastError, all.LastFailed, all.LastObject = s.LastError, s.LastFailed, s.LastObject
	}
	return all
}
