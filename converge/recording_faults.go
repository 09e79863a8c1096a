// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe/recording"
)

// recordedFaults are the faults of a recording.
type recordedFaults struct {
	schedule schedule
	// with are the faults that are disabled by default.
	with map[Fault]bool
	// errors are the different errors that reconciles returned.
	errors []string
	// restarted is set if the recording begins with the start of the controller.
	restarted bool
}

// faultReader finds the faults of a recording. It counts calls and events as an injector does.
type faultReader struct {
	recordedFaults

	visits map[site]int
	// late counts the runs in which an answer lacked an event.
	late map[point]int
	// generated are the prefixes of generated names.
	generated map[objectID]string
	calls     []*recording.Call
	versions  map[objectID][]string
}

// faultsOfRecording returns the faults of a recording.
func faultsOfRecording(r *recording.Recording) *recordedFaults {
	f := &faultReader{
		recordedFaults: recordedFaults{with: map[Fault]bool{}}, visits: map[site]int{}, late: map[point]int{},
		generated: map[objectID]string{}, versions: map[objectID][]string{},
	}
	for i := range r.Runs {
		for n := range r.Runs[i].Calls {
			f.calls = append(f.calls, &r.Runs[i].Calls[n])
		}
	}
	for i, run := range r.Runs {
		if run.Error != "" && !slices.Contains(f.errors, alikeText(run.Error)) {
			f.errors = append(f.errors, alikeText(run.Error))
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
	for i, d := range f.schedule {
		if f.late[d.point] > 1 && d.fault == FaultLagReconcile {
			f.schedule[i].fault = FaultLagLong
		}
	}
	return &f.recordedFaults
}

// alikeText replaces the digits of a text, which differ in each run.
func alikeText(text string) string {
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
		id := idOf(obj.Ref)
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
		if fault.row().disabled {
			f.with[fault] = true
		}
		f.schedule = append(f.schedule, deviation{point{at, f.visits[at]}, fault})
	}
}

// siteOf returns the site of a call, unless no fault is injected there.
func (f *faultReader) siteOf(c *recording.Call) (site, bool) {
	at := site{act: c.Verb, kind: c.Object.Kind, key: f.keyOf(c.Object)}
	switch {
	case !isWrite(c) && c.Cached:
		return site{}, false
	case !isWrite(c):
		at.act = "live " + c.Verb
	case c.Apply:
		at.act = "apply"
	case c.Verb == "deletecollection":
		at.act = "delete all"
	}
	if c.GenerateName != "" {
		at.key.Name = c.GenerateName
	}
	if c.Subresource != "" {
		at.kind += "/" + c.Subresource
	}
	return at, true
}

// keyOf returns the key of an object as it is in sites.
func (f *faultReader) keyOf(ref recording.Ref) types.NamespacedName {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if prefix := f.generated[idOf(ref)]; prefix != "" {
		key.Name = prefix + "*"
	}
	return key
}

// lag adds the delay of the first event that an answer lacked.
func (f *faultReader) lag(stale recording.Stale) {
	versions := f.versions[idOf(stale.Ref)]
	at, n := site{act: "event modified", kind: stale.Kind, key: f.keyOf(stale.Ref)}, 1
	switch {
	case stale.Known == "":
		at.act = "event deleted"
	case stale.Has == "":
		at.act = "event added"
	default:
		n = max(1, slices.Index(versions, stale.Has)+1)
	}
	p := point{at, n}
	if f.late[p]++; f.late[p] == 1 {
		f.schedule = append(f.schedule, deviation{p, FaultLagReconcile})
	}
}

// faultOf returns the fault that a failed call had, or "" if the error is a consequence of something else.
func (f *faultReader) faultOf(i int) Fault {
	c := f.calls[i]
	isChange := isWrite(c) && c.Verb != "create"
	switch reason := c.Error.Reason; {
	case reason == "Conflict" && isChange:
		return FaultConflict
	case reason == "NotFound" && isChange:
		return FaultDeleted
	case reason == "AlreadyExists":
		return FaultExists
	case reason == "TooManyRequests" || c.Error.Code == 429:
		return FaultTooManyRequests
	case reason == "Forbidden" && strings.Contains(c.Error.Text, "exceeded quota"):
		return FaultQuota
	case reason == "Forbidden":
		return FaultForbidden
	case c.Error.Code == 0 || reason == "Timeout" || c.Error.Code == 504:
		if isWrite(c) && f.tookEffect(i) {
			return FaultTimeoutApplied
		}
		return FaultTimeoutLost
	case c.Error.Code >= 500:
		return FaultServerError
	}
	return ""
}

// tookEffect reports whether later answers show that a write took effect whose answer was lost.
func (f *faultReader) tookEffect(i int) bool {
	c := f.calls[i]
	id := idOf(c.Object)
	for _, later := range f.calls[i+1:] {
		again := isWrite(later) && idOf(later.Object) == id && later.Verb == c.Verb && later.GenerateName == c.GenerateName
		switch {
		case again && later.Error == nil && c.GenerateName == "":
			return false
		case again && c.Verb == "create" && later.Error != nil && later.Error.Reason == "AlreadyExists":
			return true
		case isWrite(later):
			continue
		}
		for _, obj := range later.Objects {
			if idOf(obj.Ref) == id || c.GenerateName != "" && obj.Kind == id.kind &&
				strings.HasPrefix(obj.Name, c.GenerateName) {
				return true
			}
		}
		if c.Verb == "delete" && later.Error != nil && later.Error.Reason == "NotFound" && idOf(later.Object) == id {
			return true
		}
	}
	return false
}
