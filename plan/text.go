// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"trueup.dev/observe"
)

// maxLines is the number of fields of an object that a text shows.
const maxLines = 20

var signs = map[Action]string{Create: "+", Update: "~", Replace: "±", Delete: "-"}

// Text returns the plan as lines, which begin with + for an object that is created, ~ for one that is updated, - for
// one that is deleted and ± for one that is replaced. The last line is a sum. At most 20 fields of an object are shown,
// and no owner references of new objects. The text is for people, and may change: use the JSON of the plan in programs.
func (p *Plan) Text() string {
	var b strings.Builder
	for _, c := range p.Changes {
		c.text(&b)
	}
	for _, text := range p.External {
		fmt.Fprintf(&b, "* outside of Kubernetes: %s\n", text)
	}
	for _, e := range p.Events {
		fmt.Fprintf(&b, "event of %s %s: %s %s: %s\n", e.Kind, qualified(e.Namespace, e.Name), e.Type, e.Reason, e.Message)
	}
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "! error of %v: %s\n", f.Request, f.Error)
	}
	for _, unknown := range p.Unknown {
		fmt.Fprintf(&b, "? unknown: %s\n", unknown)
	}
	b.WriteString(p.Sum() + "\n")
	return b.String()
}

// Sum returns the numbers of changes, in one line.
func (p *Plan) Sum() string {
	if !p.HasChanges() {
		return "No changes." + p.next()
	}
	var parts []string
	for _, part := range []struct {
		action Action
		text   string
	}{
		{Create, "%d to create"}, {Update, "%d to update"}, {Replace, "%d to replace"}, {Delete, "%d to delete"},
	} {
		if n := p.count(part.action); n > 0 {
			parts = append(parts, fmt.Sprintf(part.text, n))
		}
	}
	if p.count(Delete, Replace) == 0 {
		parts = append(parts, "nothing to delete")
	}
	if n := len(p.External); n > 0 {
		parts = append(parts, fmt.Sprintf("%d outside of Kubernetes", n))
	}
	return "Plan: " + strings.Join(parts, ", ") + "." + p.next()
}

func (p *Plan) next() string {
	if p.RequeueAfter == 0 {
		return ""
	}
	return fmt.Sprintf(" The next reconcile is due after %v.", p.RequeueAfter)
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (c *Change) text(b *strings.Builder) {
	name := c.Name
	if name == "" {
		name = c.GenerateName + "<generated>"
	}
	fmt.Fprintf(b, "%s %s %s", signs[c.Action], c.Kind, qualified(c.Namespace, name))
	switch {
	case c.Collected && c.Action == Delete:
		b.WriteString(" (by the garbage collector)")
	case len(c.Finalizers) > 0:
		fmt.Fprintf(b, " (waits for finalizers: %s)", strings.Join(c.Finalizers, ", "))
	}
	b.WriteString("\n")
	fields := c.Fields
	if c.Action == Create { // the owner of a new object is not a surprise
		fields = slices.DeleteFunc(slices.Clone(fields), func(f observe.Change) bool {
			return f.Path == "metadata.ownerReferences"
		})
	}
	for i, f := range fields {
		if i == maxLines && len(fields) > maxLines+1 {
			fmt.Fprintf(b, "    … %d more fields\n", len(fields)-i)
			break
		}
		fmt.Fprintf(b, "    %s\n", line(f, c.Action == Create))
	}
}

func line(f observe.Change, created bool) string {
	isCondition := strings.Contains(f.Path, "]: ") // the path has its status and reason, the values are messages
	// The path ends with "message" if a message changes, and does not if it is new.
	message := strings.TrimSuffix(f.Path, "message")
	if message == f.Path {
		message += ", "
	}
	switch {
	case isCondition && f.Before == "" && f.After != "":
		return message + "message " + f.After
	case isCondition && f.After != "":
		return message + "message " + f.Before + " → " + f.After
	case isCondition:
		return f.Path
	case created || f.Before == "" && f.After != "":
		return f.Path + " = " + cmp.Or(f.After, `""`)
	case f.Before == "" && f.After == "":
		return f.Path
	case f.After == "":
		return f.Path + " removed, was " + f.Before
	}
	return f.Path + ": " + f.Before + " → " + f.After
}

// Summary sums up any number of plans. Its size is limited, whatever their number is. The zero value is ready for use.
type Summary struct {
	// Plans is the number of plans, Changing that of plans with changes, and Failing that of plans with errors.
	Plans    int `json:"plans"`
	Changing int `json:"changing"`
	Failing  int `json:"failing"`
	// Groups are changes of the same field, in the order in which they came up. The first 1,000 are kept.
	Groups []*Group `json:"groups,omitempty"`
	// Others is the number of changes in no group.
	Others int `json:"others,omitempty"`
	// Deleted is the number of objects that are deleted or replaced.
	Deleted int `json:"deleted"`
	// Errors and Unknown have the first 20 different texts.
	Errors  []string `json:"errors,omitempty"`
	Unknown []string `json:"unknown,omitempty"`

	groups map[groupID]*Group
}

// Group is a change that several objects have.
type Group struct {
	Action Action `json:"action"`
	Kind   string `json:"kind"`
	// Path is the field of an update. It is empty for other actions.
	Path string `json:"path,omitempty"`
	// Condition is what changed of a condition, if that is the field: "added, status True".
	Condition string `json:"condition,omitempty"`
	// Before and After are empty if they differ between objects.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Objects is the number of objects.
	Objects int `json:"objects"`
	// Collected is set for objects that the garbage collector deletes.
	Collected bool `json:"collected,omitempty"`
	// Example is the name of one of the objects.
	Example string `json:"example"`
}

type groupID struct {
	action     Action
	kind, path string
	collected  bool
}

// Limits of a [Summary].
const (
	maxGroups = 1000
	maxTexts  = 20
)

// Add adds a plan.
func (s *Summary) Add(p *Plan) {
	s.Plans++
	if p.HasChanges() {
		s.Changing++
	}
	if len(p.Errors) > 0 {
		s.Failing++
	}
	s.Deleted += p.count(Delete, Replace)
	for _, f := range p.Errors {
		s.Errors = limited(s.Errors, f.Error)
	}
	for _, unknown := range p.Unknown {
		s.Unknown = limited(s.Unknown, unknown)
	}
	for _, text := range p.External {
		s.add(groupID{action: "external", kind: text}, observe.Change{}, "")
	}
	for _, c := range p.Changes {
		id := groupID{action: c.Action, kind: c.Kind, collected: c.Collected}
		example := qualified(c.Namespace, cmp.Or(c.Name, c.GenerateName))
		if c.Action != Update {
			s.add(id, observe.Change{}, example)
			continue
		}
		for _, f := range c.Fields {
			id.path = f.Path
			s.add(id, f, example)
		}
	}
}

func limited(texts []string, text string) []string {
	if len(texts) == maxTexts || slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

func (s *Summary) add(id groupID, f observe.Change, example string) {
	g := s.groups[id]
	switch {
	case g != nil:
		g.Objects++
		if g.Before != f.Before {
			g.Before = ""
		}
		if g.After != f.After {
			g.After = ""
		}
		return
	case len(s.Groups) == maxGroups:
		s.Others++
		return
	case s.groups == nil:
		s.groups = map[groupID]*Group{}
	}
	path, condition, ok := strings.Cut(id.path, "]: ")
	if ok {
		path += "]"
	}
	g = &Group{
		Action: id.action, Kind: id.kind, Path: path, Condition: condition, Before: f.Before, After: f.After,
		Objects: 1, Collected: id.collected, Example: example,
	}
	s.groups[id] = g
	s.Groups = append(s.Groups, g)
}

// Text returns the sums as lines, sums of most objects first.
func (s *Summary) Text() string {
	var b strings.Builder
	groups := slices.Clone(s.Groups)
	slices.SortStableFunc(groups, func(x, y *Group) int { return cmp.Compare(y.Objects, x.Objects) })
	for _, g := range groups {
		g.text(&b)
	}
	if s.Others > 0 {
		fmt.Fprintf(&b, "… and %d other changes\n", s.Others)
	}
	for _, text := range s.Errors {
		fmt.Fprintf(&b, "! error: %s\n", text)
	}
	for _, text := range s.Unknown {
		fmt.Fprintf(&b, "? unknown: %s\n", text)
	}
	deleted := "Nothing is deleted."
	if s.Deleted > 0 {
		deleted = fmt.Sprintf("Deleted or replaced objects: %d.", s.Deleted)
	}
	fmt.Fprintf(
		&b, "Planned requests: %d, with changes: %d, with errors: %d. %s\n", s.Plans, s.Changing, s.Failing, deleted,
	)
	return b.String()
}

func (g *Group) text(b *strings.Builder) {
	if sign := signs[g.Action]; sign != "" {
		fmt.Fprintf(b, "%s %d × %s", sign, g.Objects, g.Kind)
	} else {
		fmt.Fprintf(b, "* %d × outside of Kubernetes: %s", g.Objects, g.Kind)
	}
	if path := g.Path; path != "" {
		if g.Condition != "" {
			path += ": " + g.Condition
		}
		b.WriteString(" " + line(observe.Change{Path: path, Before: g.Before, After: g.After}, false))
	}
	if g.Collected {
		b.WriteString(" (by the garbage collector)")
	}
	if g.Example != "" {
		fmt.Fprintf(b, ", for example %s", g.Example)
	}
	b.WriteString("\n")
}
