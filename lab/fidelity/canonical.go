// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// version is a resource version. Versions of two servers are compared by their order.
type version string

// canonical replaces values that a server generates, so that the results of two servers can be compared.
type canonical struct {
	start     time.Time
	namespace string
	names     []string // pairs of a text to replace, and its replacement
	known     map[string]bool
	replacer  *strings.Replacer
	ports     map[int64]string

	orderless bool // causes of an error are in any order
}

func newCanonical(t *Transcript) *canonical {
	c := &canonical{start: t.Start, namespace: t.Namespace, known: map[string]bool{}, ports: map[int64]string{}}
	uids, generated, addresses := 0, 0, 0
	learn := func(step Step, object Object, failure *Failure) {
		if uid, _, _ := unstructured.NestedString(object, "metadata", "uid"); strings.Count(uid, "-") == 4 &&
			c.name(uid, fmt.Sprintf("UID%d", uids)) {
			uids++
		}
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		prefix, _, _ := unstructured.NestedString(object, "metadata", "generateName")
		if failure != nil && prefix != "" {
			name = regexp.MustCompile(regexp.QuoteMeta(prefix) + `[a-z0-9]{5}\b`).FindString(failure.Text)
		}
		if step.Verb == Create && step.Name == "" && prefix != "" && name != "" &&
			c.name(name, fmt.Sprintf("%sGENERATED%d", strings.ReplaceAll(prefix, t.Namespace, "NAMESPACE"), generated)) {
			generated++
		}
		if step.Kind.Kind == "Service" && !step.DryRun { // contains an address that is not allocated
			address, _, _ := unstructured.NestedString(object, "spec", "clusterIP")
			if assigned.MatchString(address) && c.name(address, fmt.Sprintf("ADDRESS%d", addresses)) {
				addresses++
			}
		}
	}
	for _, step := range t.Steps {
		for _, answer := range step.Answers {
			learn(step, answer.Object, answer.Failure)
			for _, item := range answer.Items {
				learn(step, item, nil)
			}
		}
	}
	for _, kind := range t.Kinds {
		for _, event := range t.Events[kind] {
			learn(Step{Operation: Operation{Kind: &Kind{GroupVersionKind: kind}}}, event.Object, nil)
		}
	}
	for _, watched := range t.Watched {
		for _, event := range watched.Events {
			learn(Step{Operation: Operation{Kind: &Kind{GroupVersionKind: watched.Kind}}}, event.Object, nil)
		}
	}
	c.name(t.Namespace, "NAMESPACE") // last, because generated names may start with it
	c.replacer = strings.NewReplacer(c.names...)
	return c
}

func (c *canonical) name(from, to string) bool {
	if c.known[from] || from == "" {
		return false
	}
	c.known[from] = true
	c.names = append(c.names, from, to)
	return true
}

// versions match resource versions and times in error texts.
var (
	versions = regexp.MustCompile(`(ResourceVersion in (?:the )?(?:precondition|object meta|record)(?:: | \())\d+`)
	times    = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| \+0000 UTC)`)
	// of services: the ones of the control plane and the ones of the API in memory
	assigned = regexp.MustCompile(`\b(?:198\.18|10\.\d{1,3})(?:\.\d{1,3}){2}\b`)
	// UIDs of rejected objects
	unseen = regexp.MustCompile(
		`\b(?:[1-9a-f][0-9a-f]{7}|0[1-9a-f][0-9a-f]{6}|00[1-9a-f][0-9a-f]{5})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`,
	)
)

func (c *canonical) text(text string) string {
	if moment, err := time.Parse(time.RFC3339, text); err == nil {
		return c.moment(moment)
	}
	text = c.replacer.Replace(text)
	for _, form := range []struct {
		*regexp.Regexp
		name string
	}{{versions, "${1}VERSION"}, {times, "TIME"}, {unseen, "UNSEEN"}, {assigned, "ADDRESS"}} {
		text = form.ReplaceAllString(text, form.name)
	}
	return conflicts(text)
}

// conflicts sorts the managers that an apply conflicts with: a server sorts objects of the same second by name, and
// others by time.
func conflicts(text string) string {
	head, rest, ok := strings.Cut(text, "conflicts: ")
	if !strings.HasPrefix(head, "Apply failed with ") || !ok {
		return text
	}
	managers := strings.Split("\n"+rest, "\nconflicts with ")
	slices.Sort(managers)
	return head + "conflicts: " + strings.Join(managers, "\nconflicts with ")
}

// apart is the difference at which times count as different.
const apart = 30 * time.Second

// moment distinguishes times that differ by half a minute: sequences take seconds, and grace periods are multiples of
// that.
func (c *canonical) moment(moment time.Time) string {
	since := moment.Sub(c.start)
	if since.Abs() > time.Hour {
		return moment.Format(time.RFC3339)
	}
	return fmt.Sprintf("TIME+%v", time.Duration(math.Floor(float64(since+5*time.Second)/float64(apart)))*apart)
}

// value returns the canonical form of a value at a field.
func (c *canonical) value(field string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, item := range value {
			if item == nil {
				continue // the wire form of an absent field
			}
			fields[c.replacer.Replace(name)] = c.value(name, item)
		}
		return fields
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			items = append(items, c.value(field, item))
		}
		if field == "managedFields" {
			// Entries of the same second are sorted by name, others by time.
			slices.SortStableFunc(items, func(a, b any) int { return strings.Compare(entry(a), entry(b)) })
		}
		if field == "causes" {
			slices.SortStableFunc(items, func(a, b any) int { return strings.Compare(c.cause(a), c.cause(b)) })
		}
		return items
	case string:
		switch field {
		case "resourceVersion":
			return version(value)
		case "continue":
			return value != ""
		}
		return c.text(value)
	case int64:
		if (field == "nodePort" || field == "healthCheckNodePort") && value != 0 {
			if c.ports[value] == "" {
				c.ports[value] = fmt.Sprintf("PORT%d", len(c.ports))
			}
			return c.ports[value]
		}
	}
	return value
}

// orderless sorts the parts of an error text about several fields of a custom resource, because its schema is visited
// in random order.
func orderless(text string) string {
	head, list, ok := strings.Cut(text, " is invalid: [")
	if !ok {
		return text
	}
	parts := strings.Split(strings.TrimSuffix(list, "]"), ", ")
	slices.Sort(parts)
	return head + " is invalid: [" + strings.Join(parts, ", ") + "]"
}

// entry identifies an entry of managed fields.
func entry(managed any) string {
	fields, _ := managed.(Object)
	return fmt.Sprint(fields["operation"], fields["manager"], fields["subresource"], fields["apiVersion"])
}

// cause is what conflicts are ordered by. Others stay as they are.
func (c *canonical) cause(of any) string {
	fields, _ := of.(Object)
	switch {
	case fields["reason"] == "FieldManagerConflict", c.orderless:
		return fmt.Sprint(fields["message"], fields["field"])
	}
	return ""
}

func (c *canonical) object(object Object) any {
	if object == nil {
		return nil
	}
	return c.value("", object)
}
