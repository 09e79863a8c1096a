// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Difference is a known difference between our server and a real one. It is as narrow as possible.
type Difference struct {
	// Name is its name in the documentation of this package.
	Name string

	// Excuses reports whether a divergence is an instance of the difference.
	Excuses func(Divergence) bool

	used atomic.Int64
}

// Differences are known differences. No element is nil.
type Differences struct {
	known []*Difference
}

// KnownDifferences returns all documented differences.
func KnownDifferences() *Differences {
	return &Differences{known: []*Difference{
		{Name: "managed-fields", Excuses: func(d Divergence) bool {
			return strings.HasSuffix(d.Path, ".metadata.managedFields") && d.Ours == nil && !d.applied
		}},
		{Name: "typed-content", Excuses: func(d Divergence) bool {
			ofType := strings.Contains(d.Path, ".spec.") || strings.HasSuffix(d.Path, ".status")
			return d.typed && ofType &&
				(empty(d.Real) && d.Ours == nil || d.Real == nil && empty(d.Ours) || sameQuantity(d.Real, d.Ours))
		}},
		{Name: "pod-update-diff", Excuses: func(d Divergence) bool {
			const forbidden = "Forbidden: pod updates may not change fields other than"
			before, _, cut := strings.Cut(fmt.Sprint(d.Real), "\n")
			after, _, _ := strings.Cut(fmt.Sprint(d.Ours), "\n")
			return d.kind.Kind == "Pod" && strings.HasPrefix(d.Where, "error") && strings.Contains(before, forbidden) && cut &&
				before == after
		}},
		{Name: "values-in-errors", Excuses: func(d Divergence) bool {
			real, ok := d.Real.(string)
			ours, is := d.Ours.(string)
			return ok && is && d.builtin && strings.HasPrefix(d.Where, "error") && withoutValues(real) == withoutValues(ours)
		}},
		{Name: "nameless-service", Excuses: func(d Divergence) bool {
			nameless := func(e Edit) bool { return e.Path == "metadata/name" && e.Value == "" }
			return d.kind.Kind == "Service" && d.operation.Verb == Create && strings.HasPrefix(d.Where, "error") &&
				slices.ContainsFunc(d.operation.Edits, nameless)
		}},
		{Name: "node-ports-again", Excuses: func(d Divergence) bool {
			return d.kind == serviceKind && d.released && nodePortPath.MatchString(d.Path) &&
				portNumber(d.Ours) < portNumber(d.Real)
		}},
		{Name: "duplicate-node-ports", Excuses: func(d Divergence) bool {
			return d.kind == serviceKind && d.Where == "error" && d.Path == "" &&
				strings.HasPrefix(fmt.Sprint(d.Real), "500 <nil>: duplicate nodePort: ") &&
				strings.Contains(fmt.Sprint(d.Ours), "].nodePort: Duplicate value: ")
		}},
		{Name: "apply-types", Excuses: func(d Divergence) bool {
			problems, applies := typeProblems(d.Real)
			ours, also := typeProblems(d.Ours)
			return d.Where == "error text" && applies && also &&
				!slices.ContainsFunc(problems, func(p string) bool { return !slices.Contains(ours, p) })
		}},
		{Name: "metadata-deletion", Excuses: func(d Divergence) bool {
			o := d.operation
			return o.Verb == Delete && o.Form == Metadata && o.Kind.Untyped && d.Where == "error" && d.Ours == "none" &&
				strings.HasPrefix(fmt.Sprint(d.Real), "*runtime.notRegisteredErr")
		}},
	}}
}

// withoutValues removes the parts of a text in braces.
func withoutValues(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '{':
			depth++
		case r == '}' && depth > 0:
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

var (
	serviceKind  = corev1.SchemeGroupVersion.WithKind("Service")
	nodePortPath = regexp.MustCompile(`\.spec\.(ports\[\d+\]\.nodePort|healthCheckNodePort)$`)
)

// releasesNodePorts reports whether a service first has node ports, and then none.
func releasesNodePorts(events []Event) bool {
	had := map[any]bool{}
	for _, event := range events {
		metadata, _ := event.Object["metadata"].(Object)
		spec, _ := event.Object["spec"].(Object)
		switch uid := metadata["uid"]; {
		case spec["type"] == "NodePort" || spec["type"] == "LoadBalancer":
			had[uid] = true
		case had[uid]:
			return true
		}
	}
	return false
}

// portNumber returns the number of other ports seen before a port.
func portNumber(port any) int {
	text, _ := port.(string)
	n, err := strconv.Atoi(strings.TrimPrefix(text, "PORT"))
	if err != nil {
		return -1
	}
	return n
}

// typeProblems returns the type errors of an applied configuration.
func typeProblems(text any) ([]string, bool) {
	s, _ := text.(string)
	head, problems, found := strings.Cut(s, "): ")
	if !found || !strings.HasPrefix(head, "failed to create typed patch object (") {
		return nil, false
	}
	return strings.Split(strings.TrimPrefix(problems, "errors:\n  "), "\n  "), true
}

func empty(value any) bool {
	switch value := value.(type) {
	case Object:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// sameQuantity reports whether two values are the same quantity in different notations.
func sameQuantity(a, b any) bool {
	x, errX := resource.ParseQuantity(fmt.Sprint(a))
	y, errY := resource.ParseQuantity(fmt.Sprint(b))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

func (d *Differences) excuse(divergence Divergence) bool {
	if d == nil {
		return false
	}
	for _, difference := range d.known {
		if difference.Excuses(divergence) {
			difference.used.Add(1)
			return true
		}
	}
	return false
}

// Used returns the number of uses of each difference, by name.
func (d *Differences) Used() map[string]int64 {
	used := map[string]int64{}
	for _, difference := range d.known {
		used[difference.Name] = difference.used.Load()
	}
	return used
}

// Without returns the differences except one.
func (d *Differences) Without(name string) *Differences {
	return &Differences{
		known: slices.DeleteFunc(slices.Clone(d.known), func(difference *Difference) bool { return difference.Name == name }),
	}
}
