// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/converge/internal/phrase"
)

// Site is an action that can be repeated.
type Site struct {
	// Program is the name of the program that acts, or whose cache receives an event. It is empty for the first program,
	// and for actions of others.
	Program string
	// Act is the action, for example "create" or "event added".
	Act string
	// Kind is a kind of objects, with a slash and the subresource if there is one.
	Kind string
	Key  types.NamespacedName
}

// Compare orders sites.
func (s Site) Compare(other Site) int {
	return cmp.Or(
		strings.Compare(s.Program, other.Program), strings.Compare(s.Act, other.Act), strings.Compare(s.Kind, other.Kind),
		strings.Compare(s.Key.Namespace, other.Key.Namespace), strings.Compare(s.Key.Name, other.Key.Name),
	)
}

// Point is the n-th repetition of an action in a run. Other runs have the same point, so that schedules remain valid
// when faults are added or removed.
type Point struct {
	Site

	N int
}

// String formats a point for people.
func (p Point) String() string {
	var b strings.Builder
	b.WriteString(p.Act)
	if p.Kind != "" {
		b.WriteString(" " + p.Kind)
	}
	if p.Key.Name != "" {
		b.WriteString(" " + phrase.Name(p.Key))
	}
	if p.Program != "" {
		b.WriteString(" by " + p.Program)
	}
	if p.N > 1 {
		fmt.Fprintf(&b, " #%d", p.N)
	}
	return b.String()
}

// IsAboutKindOf reports whether two actions are about the same kind of objects, or their subresources.
func (s Site) IsAboutKindOf(other Site) bool {
	one, _, _ := strings.Cut(s.Kind, "/")
	two, _, _ := strings.Cut(other.Kind, "/")
	return one == two
}

// Deviation is a fault at a point.
type Deviation struct {
	Point

	Fault Fault
}

func (d Deviation) String() string { return fmt.Sprintf("%s at %s", d.Fault, d.Point) }

// Schedule is a run with faults at these points.
type Schedule []Deviation

// At returns the fault at a point, or "".
func (s Schedule) At(p Point) Fault {
	for _, d := range s {
		if d.Point == p {
			return d.Fault
		}
	}
	return ""
}

// Has reports whether a fault is in the schedule.
func (s Schedule) Has(fault Fault) bool {
	return slices.ContainsFunc(s, func(d Deviation) bool { return d.Fault == fault })
}

// With returns the schedule with a further fault.
func (s Schedule) With(d Deviation) Schedule { return append(slices.Clip(s), d) }

const scheduleVersion = "v1"

// Encode formats a schedule for a command line and for files, with the seed of its run. Actions of programs other than
// the first one begin with the name of the program.
func (s Schedule) Encode(seed uint64) string {
	encoded := make([]string, 0, len(s))
	for _, d := range s {
		program := ""
		if d.Program != "" {
			program = url.QueryEscape(d.Program) + ":"
		}
		encoded = append(encoded, fmt.Sprintf("%s@%s%s:%s:%s:%d", d.Fault, program,
			url.QueryEscape(d.Act), url.QueryEscape(d.Kind), url.QueryEscape(d.Key.Namespace)+"/"+url.QueryEscape(d.Key.Name),
			d.N))
	}
	return fmt.Sprintf("%s:%d:%s", scheduleVersion, seed, strings.Join(encoded, ","))
}

// Decode is the opposite of encode.
func Decode(encoded string) (s Schedule, seed uint64, err error) {
	version, rest, _ := strings.Cut(strings.TrimSpace(encoded), ":")
	number, list, ok := strings.Cut(rest, ":")
	if seed, err = strconv.ParseUint(number, 10, 64); !ok || version != scheduleVersion || err != nil {
		return nil, 0, fmt.Errorf("schedule %q: must begin with %q, a seed and a colon", encoded, scheduleVersion+":")
	}
	s = Schedule{}
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

func decodeDeviation(encoded string) (Deviation, error) {
	fault, at, ok := strings.Cut(encoded, "@")
	if !ok || !slices.Contains(All, Fault(fault)) {
		return Deviation{}, fmt.Errorf("unknown fault %q", fault)
	}
	parts := strings.Split(at, ":")
	if len(parts) == 4 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 5 {
		return Deviation{}, fmt.Errorf("want action, kind, name and number, separated by colons")
	}
	for i, part := range parts[:3] {
		decoded, err := url.QueryUnescape(part)
		if err != nil {
			return Deviation{}, err
		}
		parts[i] = decoded
	}
	namespace, name, _ := strings.Cut(parts[3], "/")
	namespace, err := url.QueryUnescape(namespace)
	if err != nil {
		return Deviation{}, err
	}
	if name, err = url.QueryUnescape(name); err != nil {
		return Deviation{}, err
	}
	n, err := strconv.Atoi(parts[4])
	if err != nil || n < 1 {
		return Deviation{}, fmt.Errorf("%q must be a number greater than 0", parts[4])
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	return Deviation{Point{Site{parts[0], parts[1], parts[2], key}, n}, Fault(fault)}, nil
}

// Injectable is a point, and the faults that apply there.
type Injectable struct {
	Point

	Faults Set
	// Version and Step identify equivalent crashes.
	Version int64
	Step    int
	// After is the version after the request of the point.
	After int64
}

// IsRest reports whether a fault ends the process while the controller is idle.
func (d Deviation) IsRest() bool { return d.Fault == Restart || d.Fault == StaleStart }

// OnlyEnding returns points with the faults that end the process, and without their other faults.
func OnlyEnding(points []Injectable) []Injectable {
	found := slices.Clone(points)
	for i := range found {
		found[i].Faults &= EndingFaults
	}
	return found
}
