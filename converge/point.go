// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// site is an action that can be repeated.
type site struct {
	// program is the name of the program that acts, or whose cache receives an event. It is empty for the first program,
	// and for actions of others.
	program string
	// act is the action, for example "create" or "event added".
	act string
	// kind is a kind of objects, with a slash and the subresource if there is one.
	kind string
	key  types.NamespacedName
}

// compare orders sites.
func (s site) compare(other site) int {
	return cmp.Or(
		strings.Compare(s.program, other.program), strings.Compare(s.act, other.act), strings.Compare(s.kind, other.kind),
		strings.Compare(s.key.Namespace, other.key.Namespace), strings.Compare(s.key.Name, other.key.Name),
	)
}

// point is the n-th repetition of an action in a run. Other runs have the same point, so that schedules remain valid
// when faults are added or removed.
type point struct {
	site

	n int
}

// String formats a point for people.
func (p point) String() string {
	var b strings.Builder
	b.WriteString(p.act)
	if p.kind != "" {
		b.WriteString(" " + p.kind)
	}
	if p.key.Name != "" {
		b.WriteString(" " + nameOf(p.key))
	}
	if p.program != "" {
		b.WriteString(" by " + p.program)
	}
	if p.n > 1 {
		fmt.Fprintf(&b, " #%d", p.n)
	}
	return b.String()
}

// isAboutKindOf reports whether two actions are about the same kind of objects, or their subresources.
func (s site) isAboutKindOf(other site) bool {
	one, _, _ := strings.Cut(s.kind, "/")
	two, _, _ := strings.Cut(other.kind, "/")
	return one == two
}

func nameOf(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// deviation is a fault at a point.
type deviation struct {
	point

	fault Fault
}

func (d deviation) String() string { return fmt.Sprintf("%s at %s", d.fault, d.point) }

// schedule is a run with faults at these points.
type schedule []deviation

// at returns the fault at a point, or "".
func (s schedule) at(p point) Fault {
	for _, d := range s {
		if d.point == p {
			return d.fault
		}
	}
	return ""
}

// has reports whether a fault is in the schedule.
func (s schedule) has(fault Fault) bool {
	return slices.ContainsFunc(s, func(d deviation) bool { return d.fault == fault })
}

func (s schedule) with(d deviation) schedule { return append(slices.Clip(s), d) }

const scheduleVersion = "v1"

// encode formats a schedule for a command line and for files, with the seed of its run. Actions of programs other than
// the first one begin with the name of the program.
func (s schedule) encode(seed uint64) string {
	encoded := make([]string, 0, len(s))
	for _, d := range s {
		program := ""
		if d.program != "" {
			program = url.QueryEscape(d.program) + ":"
		}
		encoded = append(encoded, fmt.Sprintf("%s@%s%s:%s:%s:%d", d.fault, program,
			url.QueryEscape(d.act), url.QueryEscape(d.kind), url.QueryEscape(d.key.Namespace)+"/"+url.QueryEscape(d.key.Name),
			d.n))
	}
	return fmt.Sprintf("%s:%d:%s", scheduleVersion, seed, strings.Join(encoded, ","))
}

// decodeSchedule is the opposite of encode.
func decodeSchedule(encoded string) (s schedule, seed uint64, err error) {
	version, rest, _ := strings.Cut(strings.TrimSpace(encoded), ":")
	number, list, ok := strings.Cut(rest, ":")
	if seed, err = strconv.ParseUint(number, 10, 64); !ok || version != scheduleVersion || err != nil {
		return nil, 0, fmt.Errorf("schedule %q: must begin with %q, a seed and a colon", encoded, scheduleVersion+":")
	}
	s = schedule{}
	if list == "" {
		return s, seed, nil
	}
	for item := range strings.SplitSeq(list, ",") {
		d, err := decodeDeviation(item)
		if err != nil {
			return nil, 0, fmt.Errorf("schedule: fault %q: %w", item, err)
		}
		s = append(s, d)
	}
	return s, seed, nil
}

func decodeDeviation(encoded string) (deviation, error) {
	fault, at, ok := strings.Cut(encoded, "@")
	if !ok || !slices.Contains(allFaults, Fault(fault)) {
		return deviation{}, fmt.Errorf("unknown fault %q", fault)
	}
	parts := strings.Split(at, ":")
	if len(parts) == 4 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 5 {
		return deviation{}, fmt.Errorf("want action, kind, name and number, separated by colons")
	}
	for i, part := range parts[:3] {
		decoded, err := url.QueryUnescape(part)
		if err != nil {
			return deviation{}, err
		}
		parts[i] = decoded
	}
	namespace, name, _ := strings.Cut(parts[3], "/")
	namespace, err := url.QueryUnescape(namespace)
	if err != nil {
		return deviation{}, err
	}
	if name, err = url.QueryUnescape(name); err != nil {
		return deviation{}, err
	}
	n, err := strconv.Atoi(parts[4])
	if err != nil || n < 1 {
		return deviation{}, fmt.Errorf("%q must be a number greater than 0", parts[4])
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	return deviation{point{site{parts[0], parts[1], parts[2], key}, n}, Fault(fault)}, nil
}
