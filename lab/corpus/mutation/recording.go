// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	"trueup.dev/lab/corpus"
)

// recording contains the requests of a correct reconciler in a run without faults.
type recording struct {
	mu sync.Mutex
	// mistakes are those that would have changed a request.
	mistakes map[Site]map[Mistake]bool
	kinds    map[schema.GroupVersionKind]bool
	// creates are the kinds that are created.
	creates map[string]bool
	// states are the states after each settling, of the run and of another one in which versions, times and UIDs are
	// different.
	states, others []state
	// last is the run whose requests are recorded.
	over bool
}

// recorder makes a recording.
type recorder struct{ *recording }

func (r recorder) serve(ctx context.Context, req *request) error {
	before := *req
	made := r.madeOf(req)
	err := req.do(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return err
	}
	r.kinds[req.gvk] = true
	if req.isRead() {
		if err != nil {
			r.note(before.Site, IgnoreError)
		}
		return err
	}
	if req.Verb == "create" || req.Verb == "apply" {
		r.creates[req.Kind] = true
	}
	for _, mistake := range made {
		r.note(req.Site, mistake)
	}
	if w := writesOf(ctx); w != nil {
		if n := len(w.held); n > 0 && w.held[n-1].Site != req.Site {
			r.note(w.held[n-1].Site, Late)
		}
		w.held = append(w.held, req)
	}
	return err
}

// madeOf lists the mistakes that would change a request, except Late.
func (r recorder) madeOf(req *request) []Mistake {
	var made []Mistake
	for _, mistake := range []Mistake{
		Drop, Double, IgnoreError, NoOwner, NoFinalizer, NoLabels, NoVersion, NoPrecondition, NoPropagation,
	} {
		if canMistake(mistake, req) {
			made = append(made, mistake)
		}
	}
	return made
}

func (r recorder) end(context.Context) error { return nil }

func (r *recording) note(at Site, mistake Mistake) {
	if r.mistakes[at] == nil {
		r.mistakes[at] = map[Mistake]bool{}
	}
	r.mistakes[at][mistake] = true
}

// errEnough ends an exploration.
var errEnough = errors.New("that is enough")

// referenceRuns is the number of runs without faults that come first: one to collect the kinds, the reference, and one
// in which versions, times and UIDs are different.
const referenceRuns = 3

// probe makes only the runs without faults, and calls look with each quiescent state. It returns the violations of the
// runs.
func probe(
	t *testing.T, s converge.Scenario, look func(run, settle int, state converge.State) error,
) (*converge.Violation, error) {
	run, settle := 0, 0
	reset, desired := s.Reset, s.Desired
	s.Reset = func() {
		if run, settle = run+1, 0; reset != nil {
			reset()
		}
	}
	s.Desired = func(state converge.State) error {
		if run > referenceRuns {
			return errEnough
		}
		if desired != nil {
			if err := desired(state); err != nil {
				return err
			}
		}
		settle++
		return look(run, settle-1, state)
	}
	report, err := converge.Check(t, s, converge.Options{Seed: 1})
	if err != nil {
		return nil, err
	}
	if report.Failure == nil || report.Failure.Violation.Message == errEnough.Error() {
		return nil, nil
	}
	return &report.Failure.Violation, nil
}

// Of returns the mutants of an entry whose mistakes change the run without faults, sorted.
func Of(t *testing.T, e corpus.Entry) ([]Mutant, error) {
	r := &recording{
		mistakes: map[Site]map[Mistake]bool{}, kinds: map[schema.GroupVersionKind]bool{}, creates: map[string]bool{},
	}
	s := intercept(e.Correct(), func(client.Client, client.Reader) interceptor { return recorder{r} })
	violation, err := probe(t, s, func(run, _ int, there converge.State) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.over = run >= referenceRuns
		seen := stateOf(there, slices.Collect(maps.Keys(r.kinds)))
		switch run {
		case 2:
			r.states = append(r.states, seen)
		case referenceRuns:
			r.others = append(r.others, seen)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if violation != nil {
		return nil, fmt.Errorf("%s: the correct reconciler fails without faults: %s", e.Name, violation)
	}
	var found []Mutant
	for site, mistakes := range r.mistakes {
		for mistake := range mistakes {
			if (mistake == NoOwner || mistake == NoLabels) && (site.Verb == "update" || site.Verb == "patch") &&
				r.creates[site.Kind] {
				continue // only the creation, once more
			}
			found = append(found, Mutant{Entry: e, Site: site, Mistake: mistake, twin: r})
		}
	}
	slices.SortFunc(found, compareMutants)
	return found, nil
}
