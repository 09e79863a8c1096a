// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Divergence is a difference between the results of two servers.
type Divergence struct {
	Step  int // index of the operation, or of the end
	Where string
	Path  string
	Real  any
	Ours  any

	operation Operation // none at the end
	applied   bool      // to this object, before
	kind      schema.GroupVersionKind
	released  bool // a service of the sequence has had node ports, and then none
	typed     bool // a custom resource with a Go type
	builtin   bool
}

// String describes a divergence in one line.
func (d Divergence) String() string {
	return fmt.Sprintf("%s%s: real %s, ours %s", d.Where, d.Path, show(d.Real), show(d.Ours))
}

func show(value any) string {
	if value == nil {
		return "nothing"
	}
	return compact(value)
}

var (
	indexes = regexp.MustCompile(`\[\d+\]`)
	numbers = regexp.MustCompile(`\d+|"[abc]"`)
)

// Signature is equal for divergences that probably have the same cause.
func (d Divergence) Signature() string {
	path, _, _ := strings.Cut(indexes.ReplaceAllString(d.Path, "[]"), "managedFields[]")
	parts := []string{d.kind.Kind, d.Where, path}
	if strings.HasPrefix(path, ".metadata") || strings.HasPrefix(path, ".kind") ||
		strings.HasPrefix(path, ".apiVersion") || d.Where == "list" {
		parts[0] = "" // similar for all kinds
	}
	if d.Where == "error" && d.Path != "" {
		parts[0] = ""
	} else if strings.HasPrefix(d.Where, "error") {
		parts = append(
			parts, string(d.operation.Verb), d.operation.Subresource, d.operation.Patch,
			numbers.ReplaceAllString(fmt.Sprint(d.Real), ""), numbers.ReplaceAllString(fmt.Sprint(d.Ours), ""),
		)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// comparison compares two transcripts of one sequence.
type comparison struct {
	real, ours  *canonical
	versions    map[string]string // of our server, by the versions of the real one
	applied     map[string]bool   // uids
	released    bool
	differences *Differences
	kinds       []*Kind
	at          Divergence
	found       []Divergence
}

// Compare returns the differences between the transcripts of a real server and ours, up to the first operation with a
// difference. It omits and counts known differences.
func Compare(real, ours *Transcript, known *Differences) []Divergence {
	c := &comparison{
		real: newCanonical(real), ours: newCanonical(ours), versions: map[string]string{}, applied: map[string]bool{},
		differences: known,
	}
	c.released = releasesNodePorts(real.Events[serviceKind])
	for _, step := range real.Steps {
		c.kinds = append(c.kinds, step.Kind)
	}
	for i := range real.Steps {
		c.at = Divergence{Step: i, operation: real.Steps[i].Operation, kind: real.Steps[i].Kind.GroupVersionKind}
		c.step(real.Steps[i], ours.Steps[i])
		if len(c.found) > 0 {
			return c.found
		}
	}
	for _, kind := range real.Kinds {
		c.at = Divergence{Step: len(real.Steps), kind: kind, applied: false}
		c.stored(real.Stored[kind], ours.Stored[kind])
		c.events("event", real.Events[kind], ours.Events[kind])
	}
	for i, watched := range real.Watched {
		c.at = Divergence{Step: len(real.Steps), kind: watched.Kind}
		c.events("event of watch "+watched.Watch, watched.Events, ours.Watched[i].Events)
	}
	return c.found
}

// report records a divergence, and reports whether it is unknown.
func (c *comparison) report(where, path string, real, ours any) bool {
	d := c.at
	d.Where, d.Path, d.Real, d.Ours, d.released = where, path, real, ours, c.released
	if i := slices.IndexFunc(c.kinds, func(k *Kind) bool { return k.GroupVersionKind == d.kind }); i >= 0 {
		d.builtin, d.typed = !c.kinds[i].Custom, c.kinds[i].Custom && !c.kinds[i].Untyped
	}
	if c.differences.excuse(d) {
		return false
	}
	c.found = append(c.found, d)
	return true
}

func (c *comparison) step(real, ours Step) {
	if len(real.Answers) != len(ours.Answers) {
		c.report("calls", "", len(real.Answers), len(ours.Answers))
	}
	for i := range min(len(real.Answers), len(ours.Answers)) {
		a, b := real.Answers[i], ours.Answers[i]
		if known := c.failure(a.Failure, b.Failure); known && (a.Failure == nil) != (b.Failure == nil) {
			continue // one of them has an answer, and the other what was sent
		}
		c.at.applied = c.applied[c.uid(a.Object)] && a.Failure == nil // else it is what was sent
		applies := real.Verb == Apply || real.Patch == ApplyPatch
		if applies && a.Failure == nil {
			c.at.applied = true
			if !real.DryRun {
				c.applied[c.uid(a.Object)] = true
			}
		}
		if real.Verb == List {
			c.list(a, b)
		} else {
			c.values("object", "", c.real.object(a.Object), c.ours.object(b.Object))
		}
	}
}

func (c *comparison) uid(object Object) string {
	metadata, _ := object["metadata"].(Object)
	uid, _ := metadata["uid"].(string)
	return c.real.text(uid)
}

// failure compares two errors, and reports whether their difference is known.
func (c *comparison) failure(real, ours *Failure) (known bool) {
	describe := func(f *Failure) string {
		switch {
		case f == nil:
			return "none"
		case f.Status == nil:
			return f.Type
		}
		return fmt.Sprintf("%v %v", f.Status["code"], f.Status["reason"])
	}
	if describe(real) != describe(ours) {
		texts := func(f *Failure, c *canonical) any {
			if f == nil {
				return "none"
			}
			return describe(f) + ": " + c.text(f.Text)
		}
		return !c.report("error", "", texts(real, c.real), texts(ours, c.ours))
	}
	if real == nil {
		return false
	}
	text, other := c.real.text(real.Text), c.ours.text(ours.Text)
	custom := c.at.operation.Kind.Custom
	if custom {
		text, other = orderless(text), orderless(other)
	}
	c.values("error text", "", text, other)
	if text == other {
		c.real.orderless, c.ours.orderless = custom, custom
		a, b := c.real.object(real.Status), c.ours.object(ours.Status)
		c.real.orderless, c.ours.orderless = false, false
		for _, status := range []any{a, b} {
			if fields, ok := status.(Object); ok {
				delete(fields, "message") // which is the text
			}
		}
		c.values("error", "", a, b)
	}
	return false
}

// list compares a page. It does not compare the version, which is the version of the whole store and changes with
// writes of other clients.
func (c *comparison) list(real, ours Answer) {
	names := func(c *canonical, items []Object) []any {
		sorted := make([]any, 0, len(items))
		for _, item := range items {
			sorted = append(sorted, c.object(item))
		}
		if strings.Contains(namesOf(sorted), "GENERATED") { // these come in an order of their own
			slices.SortStableFunc(sorted, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
		}
		return sorted
	}
	a, b := c.real.object(real.Object).(Object), c.ours.object(ours.Object).(Object)
	for _, list := range []Object{a, b} {
		if metadata, ok := list["metadata"].(Object); ok && metadata["resourceVersion"] != nil {
			metadata["resourceVersion"] = "VERSION"
		}
	}
	c.values("list", "", a, b)
	reals, others := names(c.real, real.Items), names(c.ours, ours.Items)
	if given, taken := namesOf(reals), namesOf(others); given != taken {
		c.report("items", "", given, taken)
		return
	}
	for i := range reals {
		fields, _ := reals[i].(Object)
		metadata, _ := fields["metadata"].(Object)
		uid, _ := metadata["uid"].(string)
		c.at.applied = c.applied[uid]
		c.values("items", fmt.Sprintf("[%d]", i), reals[i], others[i])
	}
}

func nameOf(object any) string {
	fields, _ := object.(Object)
	metadata, _ := fields["metadata"].(Object)
	return fmt.Sprint(metadata["namespace"], "/", metadata["name"])
}

func namesOf(objects []any) string {
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, nameOf(object))
	}
	return strings.Join(names, " ")
}

func (c *comparison) stored(real, ours []Object) {
	c.list(Answer{Object: Object{}, Items: real}, Answer{Object: Object{}, Items: ours})
}

func (c *comparison) events(where string, real, ours []Event) {
	describe := func(c *canonical, events []Event) []any {
		lines := make([]any, 0, len(events))
		for _, event := range events {
			lines = append(lines, fmt.Sprintf("%s %s", event.Type, nameOf(c.object(event.Object))))
		}
		return lines
	}
	a, b := describe(c.real, real), describe(c.ours, ours)
	if show(a) != show(b) {
		c.report(where, "", a, b)
		return
	}
	for i := range real {
		c.at.applied = false
		c.values(
			where, fmt.Sprintf("[%d](%s)", i, real[i].Type), c.real.object(real[i].Object), c.ours.object(ours[i].Object),
		)
	}
}

// values compares two values, and records the versions in them.
func (c *comparison) values(where, path string, real, ours any) {
	switch a := real.(type) {
	case Object:
		b, ok := ours.(Object)
		if !ok {
			break
		}
		keys := map[string]bool{}
		for key := range a {
			keys[key] = true
		}
		for key := range b {
			keys[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c.values(where, path+"."+key, a[key], b[key])
		}
		return
	case []any:
		b, ok := ours.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			c.values(where, fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
		}
		return
	case version:
		if b, ok := ours.(version); ok {
			c.order(where, path, a, b)
			return
		}
	default:
		if _, other := ours.([]any); !other {
			if _, other := ours.(Object); !other && real == ours {
				return
			}
		}
	}
	c.report(where, path, real, ours)
}

// order checks that two versions have the same relation to all other recorded versions.
func (c *comparison) order(where, path string, real, ours version) {
	a, errA := strconv.ParseInt(string(real), 10, 64)
	b, errB := strconv.ParseInt(string(ours), 10, 64)
	if errA != nil || errB != nil { // a version that the sequence itself generated
		if real != ours {
			c.report(where, path, string(real), string(ours))
		}
		return
	}
	for before, other := range c.versions {
		x, _ := strconv.ParseInt(before, 10, 64)
		y, _ := strconv.ParseInt(other, 10, 64)
		if cmp.Compare(a, x) != cmp.Compare(b, y) {
			c.report(where, path, relation(a, x), relation(b, y))
			return
		}
	}
	c.versions[string(real)] = string(ours)
}

func relation(a, before int64) string {
	return [...]string{"older than", "the same as", "newer than"}[cmp.Compare(a, before)+1] + " another version seen"
}
