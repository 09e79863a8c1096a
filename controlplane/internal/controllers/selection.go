// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// None as the only element of a list of controllers disables all.
	None = "none"

	// All in a list of controllers stands for Default.
	All = "*"
)

// Default returns the names of the controllers that run by default.
func Default() []string {
	return namesOf(func(d descriptor) bool { return !d.optional })
}

// Known returns the names of all controllers that can run.
func Known() []string {
	return namesOf(func(descriptor) bool { return true })
}

func namesOf(include func(descriptor) bool) []string {
	var names []string
	for _, d := range catalog() {
		if include(d) {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return names
}

// Resolve returns the controllers that a list selects, sorted. An element is the name of a controller, with an optional
// "+" before it; "*" for those that run by default; or a name with "-" before it, which removes the controller. A list
// whose elements all begin with "+" or "-" changes the default. A nil list selects the default, and [None] none. The
// names that kube-controller-manager used in the past are accepted. The error lists every problem.
func Resolve(list []string) ([]string, error) {
	if list == nil {
		return Default(), nil
	}
	if slices.Equal(list, []string{None}) {
		return nil, nil
	}
	selected, removed := map[string]bool{}, map[string]bool{}
	var problems []error
	var unknown []string
	changesDefault := len(list) > 0
	for _, element := range list {
		sign, name := "", strings.TrimSpace(element)
		if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
			sign, name = name[:1], name[1:]
		} else {
			changesDefault = false
		}
		d, known := find(name)
		switch reason, out := leftOut[name]; {
		case known && sign == "-":
			removed[d.name] = true
		case known:
			selected[d.name] = true
		case name == All && sign == "":
			for _, name := range Default() {
				selected[name] = true
			}
		case name == None && sign == "":
			problems = append(problems, fmt.Errorf("controllers: %q must be the only name", None))
		case out && sign == "-":
			// It does not run in any case.
		case out:
			problems = append(problems, fmt.Errorf("controllers: %s is not part of this control plane: %s", name, reason))
		default:
			unknown = append(unknown, cmp.Or(name, `""`))
		}
	}
	if changesDefault {
		for _, name := range Default() {
			selected[name] = true
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		problems = append(problems, fmt.Errorf("controllers: %s: unknown; known controllers: %s",
			strings.Join(unknown, ", "), strings.Join(Known(), ", ")))
	}
	maps.DeleteFunc(selected, func(name string, _ bool) bool { return removed[name] })
	return slices.Sorted(maps.Keys(selected)), errors.Join(problems...)
}

func find(name string) (descriptor, bool) {
	for _, d := range catalog() {
		if name != "" && (d.name == name || d.alias == name) {
			return d, true
		}
	}
	return descriptor{}, false
}
