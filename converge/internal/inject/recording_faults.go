// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe/recording"
)

// Recorded are the faults of a recording.
type Recorded struct {
	Schedule Schedule
	// With are the faults that are disabled by default.
	With map[Fault]bool
	// Errors are the different errors that reconciles returned.
	Errors []string
	// restarted is set if the recording begins with the start of the controller.
	restarted bool
}

// faultReader finds the faults of a recording. It counts calls and events as an injector does.
type faultReader struct {
	Recorded

	visits map[Site]int
	// late counts the runs in which an answer lacked an event.
	late map[Point]int
	// generated are the prefixes of generated names.
	generated map[ObjectID]string
	calls     []*recording.Call
	versions  map[ObjectID][]string
}

// OfRecording returns the faults of a recording.
func OfRecording(r *recording.Recording) *Recorded {
	f := &faultReader{
		Recorded: Recorded{With: map[Fault]bool{}}, visits: map[Site]int{}, late: map[Point]int{},
		generated: map[ObjectID]string{}, versions: map[ObjectID][]string{},
	}
	for i := range r.Runs {
		for n := range r.Runs[i].Calls {
			f.calls = append(f.calls, &r.Runs[i].Calls[n])
		}
	}
	for i, run := range r.Runs {
		if run.Error != "" && !slices.Contains(f.Errors, AlikeText(run.Error)) {
			f.Errors = append(f.Errors, AlikeText(run.Error))
		}
		if i == 0 {
			f.restarted = r.Omitted == 0 && slices.ContainsFunc(run.Causes, func(c recording.Cause) bool {
				return c.Type == "StartUp"
			})
		}
	}
	for i := range f.calls {
		f.call(i)
	}
	for i, d := range f.Schedule {
		if f.late[d.Point] > 1 && d.Fault == LagReconcile {
			f.Schedule[i].Fault = LagLong
		}
	}
	return &f.Recorded
}

// AlikeText replaces the digits of a text, which differ in each run.
func AlikeText(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '#'
		}
		return r
	}, text)
}

func (f *faultReader) call(i int) {
	c := f.calls[i]
	for _, obj := range c.Objects {
		id := IDOf(obj.Ref)
		if len(obj.Content) > 0 {
			f.versions[id] = append(f.versions[id], obj.ResourceVersion)
		}
		if c.GenerateName != "" && c.Error == nil && strings.HasPrefix(obj.Name, c.GenerateName) {
			f.generated[id] = c.GenerateName
		}
	}
	for _, stale := range c.Stale {
		f.lag(stale)
	}
	at, ok := f.siteOf(c)
	if !ok {
		return
	}
	f.visits[at]++
	if c.Error == nil {
		return
	}
	if fault := f.faultOf(i); fault != "" {
		if fault.Row().Disabled {
			f.With[fault] = true
		}
		f.Schedule = append(f.Schedule, Deviation{Point{at, f.visits[at]}, fault})
	}
}

// siteOf returns the site of a call, unless no fault is injected there.
func (f *faultReader) siteOf(c *recording.Call) (Site, bool) {
	at := Site{Act: c.Verb, Kind: c.Object.Kind, Key: f.keyOf(c.Object)}
	switch {
	case !IsWrite(c) && c.Cached:
		return Site{}, false
	case !IsWrite(c):
		at.Act = "live " + c.Verb
	case c.Apply:
		at.Act = "apply"
	case c.Verb == "deletecollection":
		at.Act = "delete all"
	}
	if c.GenerateName != "" {
		at.Key.Name = c.GenerateName
	}
	if c.Subresource != "" {
		at.Kind += "/" + c.Subresource
	}
	return at, true
}

// keyOf returns the key of an object as it is in sites.
func (f *faultReader) keyOf(ref recording.Ref) types.NamespacedName {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if prefix := f.generated[IDOf(ref)]; prefix != "" {
		key.Name = prefix + "*"
	}
	return key
}

// lag adds the delay of the first event that an answer lacked.
func (f *faultReader) lag(stale recording.Stale) {
	versions := f.versions[IDOf(stale.Ref)]
	at, n := Site{Act: "event modified", Kind: stale.Kind, Key: f.keyOf(stale.Ref)}, 1
	switch {
	case stale.Known == "":
		at.Act = "event deleted"
	case stale.Has == "":
		at.Act = "event added"
	default:
		n = max(1, slices.Index(versions, stale.Has)+1)
	}
	p := Point{at, n}
	if f.late[p]++; f.late[p] == 1 {
		f.Schedule = append(f.Schedule, Deviation{p, LagReconcile})
	}
}

// faultOf returns the fault that a failed call had, or "" if the error is a consequence of something else.
func (f *faultReader) faultOf(i int) Fault {
	c := f.calls[i]
	isChange := IsWrite(c) && c.Verb != "create"
	switch reason := c.Error.Reason; {
	case reason == "Conflict" && isChange:
		return Conflict
	case reason == "NotFound" && isChange:
		return Deleted
	case reason == "AlreadyExists":
		return Exists
	case reason == "TooManyRequests" || c.Error.Code == 429:
		return TooManyRequests
	case reason == "Forbidden" && strings.Contains(c.Error.Text, "exceeded quota"):
		return Quota
	case reason == "Forbidden":
		return Forbidden
	case c.Error.Code == 0 || reason == "Timeout" || c.Error.Code == 504:
		if IsWrite(c) && f.tookEffect(i) {
			return TimeoutApplied
		}
		return TimeoutLost
	case c.Error.Code >= 500:
		return ServerError
	}
	return ""
}

// tookEffect reports whether later answers show that a write took effect whose answer was lost.
func (f *faultReader) tookEffect(i int) bool {
	c := f.calls[i]
	id := IDOf(c.Object)
	for _, later := range f.calls[i+1:] {
		again := IsWrite(later) && IDOf(later.Object) == id && later.Verb == c.Verb && later.GenerateName == c.GenerateName
		switch {
		case again && later.Error == nil && c.GenerateName == "":
			return false
		case again && c.Verb == "create" && later.Error != nil && later.Error.Reason == "AlreadyExists":
			return true
		case IsWrite(later):
			continue
		}
		for _, obj := range later.Objects {
			if IDOf(obj.Ref) == id || c.GenerateName != "" && obj.Kind == id.kind &&
				strings.HasPrefix(obj.Name, c.GenerateName) {
				return true
			}
		}
		if c.Verb == "delete" && later.Error != nil && later.Error.Reason == "NotFound" && IDOf(later.Object) == id {
			return true
		}
	}
	return false
}

// ObjectID identifies an object of a recording, without the version of its kind.
type ObjectID struct{ group, kind, namespace, name string }

// IDOf identifies an object that a recording names.
func IDOf(ref recording.Ref) ObjectID { return ObjectID{ref.Group, ref.Kind, ref.Namespace, ref.Name} }

// IsWrite reports whether a call of a recording is a write.
func IsWrite(c *recording.Call) bool { return c.Verb != "get" && c.Verb != "list" }
