// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/internal/specs"
)

// steps returns the steps of a walk, and the index of the Settle after each write. A run of them records in results
// which writes were rejected.
func (s *specSpace) steps(w walk, results []stored) (steps []Step, settles []int) {
	steps = append(steps, s.before...)
	for i, spec := range w {
		do := func(ctx context.Context, c client.Client) error {
			err := s.write(ctx, c, spec)
			if results[i].rejected == nil && !apierrs.IsInvalid(err) && !apierrs.IsForbidden(err) && !apierrs.IsBadRequest(err) {
				return err
			}
			results[i].rejected = cmp.Or(results[i].rejected, err)
			return nil
		}
		settle := Settle()
		settle.mayFail = true
		step := Step{name: "write: " + spec.describe(w[:i]), do: do}
		if spec.disturbance != "" {
			step = *s.disturbance(spec.disturbance)
			step.disturbs = true
		}
		steps = append(steps, step, settle)
		settles = append(settles, len(steps)-1)
	}
	return steps, settles
}

// describe describes a spec by its difference from the one before it.
func (s spec) describe(before walk) string {
	switch {
	case s.deleted:
		return "delete"
	case s.disturbance != "":
		return s.disturbance
	}
	old := map[string]specs.Change{}
	created := true
	if len(before) > 0 && !before[len(before)-1].deleted {
		created = false
		for _, change := range before[len(before)-1].changes {
			old[change.Path.String()] = change
		}
	}
	var parts []string
	for _, change := range s.changes {
		path := change.Path.String()
		if other, ok := old[path]; !ok || other.Value.String() != change.Value.String() {
			parts = append(parts, change.String())
		}
		delete(old, path)
	}
	for _, path := range phrase.SortedKeys(old) {
		parts = append(parts, path+" as at first")
	}
	text := strings.Join(parts, ", ")
	switch {
	case created && text == "":
		return "create"
	case created:
		return "create with " + text
	case text == "":
		return "write the same again"
	default:
		return text
	}
}

// disturbed returns a walk at whose end users perform a disturbance.
func (w walk) disturbed(name string) walk {
	s := spec{disturbance: name}
	if len(w) > 0 {
		s.changes = w[len(w)-1].changes
	}
	return append(slices.Clip(w), s)
}

// disturbance returns a disturbance of the scenario, or nil.
func (s *specSpace) disturbance(name string) *Step {
	for i := range s.plan.Disturbances {
		if step := &s.plan.Disturbances[i]; step.name == name {
			return step
		}
	}
	return nil
}

// describe describes each write.
func (w walk) describe() []string {
	lines := make([]string, len(w))
	for i := range w {
		lines[i] = w[i].describe(w[:i])
	}
	return lines
}

const (
	walkVersion = "w1"
	// unset is not JSON.
	unset = "unset"
	// disturbanceMark begins no path.
	disturbanceMark = "!"
)

// encode formats a walk with the faults of its run for a command line.
func (w walk) encode(seed uint64, faults inject.Schedule) string {
	elements := make([]string, len(w))
	for i, spec := range w {
		if spec.deleted {
			elements[i] = "-"
			continue
		}
		if spec.disturbance != "" {
			elements[i] = disturbanceMark + url.QueryEscape(spec.disturbance)
			continue
		}
		changes := make([]string, len(spec.changes))
		for n, change := range spec.changes {
			changes[n] = url.QueryEscape(change.Path.String()) + "=" + url.QueryEscape(change.Value.String())
		}
		elements[i] = strings.Join(changes, "&")
	}
	encoded := fmt.Sprintf("%s:%d:%s", walkVersion, seed, strings.Join(elements, ";"))
	if len(faults) > 0 {
		encoded += "|" + faults.Encode(seed)
	}
	return encoded
}

// decodeWalk is the opposite of encode.
func decodeWalk(encoded string) (w walk, seed uint64, faults inject.Schedule, err error) {
	encoded, scheduled, _ := strings.Cut(strings.TrimSpace(encoded), "|")
	version, rest, _ := strings.Cut(encoded, ":")
	number, list, ok := strings.Cut(rest, ":")
	if seed, err = strconv.ParseUint(number, 10, 64); !ok || version != walkVersion || err != nil {
		return nil, 0, nil, fmt.Errorf("walk %q: must begin with %q, a seed and a colon", encoded, walkVersion+":")
	}
	for element := range strings.SplitSeq(list, ";") {
		if escaped, ok := strings.CutPrefix(element, disturbanceMark); ok {
			name, err := url.QueryUnescape(escaped)
			if err != nil {
				return nil, 0, nil, fmt.Errorf("walk: disturbance %q: %w", escaped, err)
			}
			w = w.disturbed(name)
			continue
		}
		s := spec{deleted: element == "-"}
		for change := range strings.SplitSeq(element, "&") {
			if s.deleted || change == "" {
				continue
			}
			decoded, err := decodeChange(change)
			if err != nil {
				return nil, 0, nil, fmt.Errorf("walk: change %q: %w", change, err)
			}
			s.changes = append(s.changes, decoded)
		}
		w = append(w, s)
	}
	if scheduled != "" {
		faults, _, err = inject.Decode(scheduled)
	}
	return w, seed, faults, err
}

func decodeChange(encoded string) (specs.Change, error) {
	escapedPath, escapedValue, ok := strings.Cut(encoded, "=")
	path, err := url.QueryUnescape(escapedPath)
	if err != nil || !ok {
		return specs.Change{}, fmt.Errorf("want a path, an equals sign and a value")
	}
	value, err := url.QueryUnescape(escapedValue)
	if err != nil {
		return specs.Change{}, err
	}
	change := specs.Change{Path: specs.ParsePath(path)}
	if value == unset {
		change.Value.Unset = true
		return change, nil
	}
	change.Value.Content, err = jsonContent(json.RawMessage(value))
	return change, err
}
