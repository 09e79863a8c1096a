// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/past"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/observe/recording"
)

// FromRecording completes a scenario with what a recording has, which "trueup record" or the console of a controller
// has written to a file:
//
//	s, err := converge.FromRecording("testdata/recordings/orders.json", converge.Scenario{Scheme: scheme, Setup: setup})
//	if err != nil {
//		t.Fatal(err)
//	}
//	converge.Run(t, s)
//
// The scenario needs Scheme, and Setup or New with its fields. What it has of For, Given and Steps is kept. The default
// of Given are the objects that the controller read and did not make, and that of Steps are what users did as far as
// the controller saw it: they create the object, change its spec, labels and annotations, change or delete what the
// controller reads, and delete the object; after each step, they wait. If the controller lacked an object until the end
// of the recording, it may fail meanwhile. Labels and annotations that other clients have added to objects of the
// controller are added to Masks. Values that the recording masks are the values of the recording. The object always
// starts without a status and without finalizers, also if the recording starts later.
//
// [Run] and [Check] first repeat the answers that failed, and the events that were late, as a schedule of faults. The
// report says whether all of them were injected and the same errors occurred, see [Recorded]. Then they try similar
// schedules: each of the faults alone, at the repetitions next to it, and the faults that look alike to a controller.
// If the recording begins with the start of the controller, they try crashes. After that, they search as for each
// scenario.
//
// The error lists what is wrong with the file, or what the scenario lacks for it.
func FromRecording(file string, base Scenario) (Scenario, error) {
	r, err := recording.ReadFile(file)
	if err != nil {
		return Scenario{}, err
	}
	s, err := fromRecording(r, base)
	if err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func fromRecording(r recording.Recording, base Scenario) (Scenario, error) {
	if base.Scheme == nil {
		return Scenario{}, errors.New("scenario: Scheme is required")
	}
	if base.For == nil {
		obj, err := base.Scheme.New(past.KindOf(r.Object))
		primary, ok := obj.(client.Object)
		if err != nil || !ok {
			return Scenario{}, fmt.Errorf("object: the scheme of the scenario does not have %s", past.KindOf(r.Object))
		}
		base.For = primary
	}
	h, err := past.Of(&r, base.Scheme, len(base.World) > 0)
	if err != nil {
		return Scenario{}, err
	}
	if len(base.Given) == 0 {
		base.Given = h.Given
	}
	if len(base.Steps) == 0 {
		if len(h.Changes) == 0 {
			return Scenario{}, fmt.Errorf("object: no call has read or written %s: does the reconciler use the client of "+
				"observe.Client, and does its recorder keep objects?", r.Object)
		}
		base.Steps = stepsOf(h)
	}
	base.Masks = slices.Clip(base.Masks)
	for _, m := range h.Masks {
		base.Masks = append(base.Masks, Mask{Object: m.Object, Field: m.Field})
	}
	recorded := inject.OfRecording(&r)
	for fault := range recorded.With {
		base.With = append(base.With, fault)
	}
	base.recorded = recorded
	return base, nil
}

// stepsOf returns the steps of the changes that users made, after each of which they wait.
func stepsOf(h *past.History) []Step {
	var steps []Step
	settle := Settle()
	settle.plain.MayFail = h.Awaits
	for _, change := range h.Changes {
		var step Step
		switch {
		case change.Applied != nil:
			step = Apply(change.Applied)
		case change.Deleted != nil:
			step = Delete(change.Deleted)
		default:
			step = Do(change.Name, change.Do)
		}
		steps = append(steps, step, settle)
	}
	return steps
}

// Recorded says how much of a recording happened again, see [FromRecording].
type Recorded struct {
	// Replay is the schedule of the recording for the flag -converge.replay.
	Replay string
	// Faults is the number of failed answers and late events of the recording that faults stand for, and Injected is the
	// number of these that were injected. An error of the recording that is the consequence of another one may be missing.
	Faults, Injected int
	// Errors is the number of different errors of reconciles in the recording, and Again is the number of these that
	// occurred again, but for digits in their texts.
	Errors, Again int
	// Failed reports whether the schedule of the recording itself fails, and Similar is the number of similar schedules
	// that were tried after it.
	Failed  bool
	Similar int
}

// String describes in one line whether the same happened.
func (r Recorded) String() string {
	text := "recording: no fault, "
	if r.Faults > 0 {
		text = fmt.Sprintf("recording: %d of %s injected, ", r.Injected, phrase.Plural(r.Faults, "fault"))
	}
	if r.Errors > 0 {
		text += fmt.Sprintf("%d of %s occurred again", r.Again, phrase.Plural(r.Errors, "error"))
	} else {
		text += "no reconcile of it returned an error"
	}
	if r.Failed {
		return text + "; it fails"
	}
	return text + fmt.Sprintf("; it does not fail; %s tried", phrase.Plural(r.Similar, "similar schedule"))
}

// repeatRecording repeats the recording, and tries similar schedules.
func (p *plan) repeatRecording(t *testing.T, x *search.Schedules, r *Recorded) *search.Failure[inject.Schedule] {
	log := &explain.Timeline{}
	o := p.try(t, p.recorded.Schedule, log)
	x.Runs++
	r.Replay, r.Faults, r.Injected = p.encode(p.recorded.Schedule), len(p.recorded.Schedule), o.Injected
	r.Errors = len(p.recorded.Errors)
	for _, text := range p.recorded.Errors {
		if slices.ContainsFunc(
			log.Entries, func(e explain.Entry) bool { return inject.AlikeText(e.Result) == "error: "+text },
		) {
			r.Again++
		}
	}
	if found := x.Failed(p.recorded.Schedule, &o); found != nil {
		r.Failed = true
		return found
	}
	return x.Similar(p.recorded.Similar(x.Reference), &r.Similar)
}
