// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// effects records the effects of a mistake in all runs so far.
type effects struct {
	// felt reports whether a request had, or may have had, another result than without the mistake.
	felt atomic.Bool
}

// mutator makes a mistake at a site.
type mutator struct {
	Site
	Mistake

	live client.Reader
	// insists reports whether updates of a kind require a version.
	insists bool
	effects *effects
}

func (m *mutator) serve(ctx context.Context, r *request) error {
	if r.Site != m.Site {
		err := r.do(r)
		if m.Mistake != Late || r.isRead() {
			return err
		}
		if err != nil {
			m.forget(ctx) // the deferred writes are never made
			return err
		}
		return m.end(ctx)
	}
	switch m.Mistake {
	case Drop:
		m.effects.felt.Store(true)
		return nil
	case Double:
		return m.double(r)
	case Late:
		w := writesOf(ctx)
		if w == nil {
			return r.do(r)
		}
		m.effects.felt.Store(true)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.held = append(w.held, r)
		return nil
	case IgnoreError:
		if err := r.do(r); err != nil {
			m.effects.felt.Store(true)
		}
		return nil
	case NoVersion:
		return m.unconditional(ctx, r)
	}
	if canMistake(m.Mistake, r) {
		m.effects.felt.Store(true)
		spoil(m.Mistake, r)
	}
	return r.do(r)
}

// forget returns the deferred writes and removes them.
func (m *mutator) forget(ctx context.Context) []*request {
	w := writesOf(ctx)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	return held
}

// end makes the deferred writes.
func (m *mutator) end(ctx context.Context) error {
	for _, r := range m.forget(ctx) {
		if err := r.do(r); err != nil {
			return err
		}
	}
	return nil
}

// double makes a request twice. The second request has no effect if it fails, or if the object keeps its version: if it
// times out, it would have succeeded or failed in the same run without that fault, and that run is explored, too. A
// second deletion finds no object, or one that is being deleted already.
func (m *mutator) double(r *request) error {
	again := r.copied()
	if err := r.do(r); err != nil {
		return err
	}
	err := again.do(again)
	if err == nil && r.deletion == nil && (r.obj == nil || again.obj.GetResourceVersion() != r.obj.GetResourceVersion()) {
		m.effects.felt.Store(true)
	}
	return nil
}

// unconditional makes a write without a version.
func (m *mutator) unconditional(ctx context.Context, r *request) error {
	if !canMistake(NoVersion, r) {
		return r.do(r)
	}
	switch {
	case r.patch != nil:
		r.patch = unversioned{r.patch}
	case !m.insists:
		r.obj.SetResourceVersion("")
	default:
		current := r.obj.DeepCopyObject().(client.Object)
		if err := m.live.Get(ctx, client.ObjectKeyFromObject(r.obj), current); err != nil {
			return err
		}
		if r.obj.GetResourceVersion() == current.GetResourceVersion() {
			return r.do(r)
		}
		r.obj.SetResourceVersion(current.GetResourceVersion())
	}
	m.effects.felt.Store(true)
	return r.do(r)
}

// canMistake reports whether a mistake changes a request.
func canMistake(m Mistake, r *request) bool {
	whole := r.obj != nil && !strings.Contains(r.Kind, "/") &&
		slices.Contains([]string{"create", "update", "patch", "apply"}, r.Verb)
	switch m {
	case NoOwner:
		return whole && len(r.obj.GetOwnerReferences()) > 0
	case NoFinalizer:
		return whole && len(r.obj.GetFinalizers()) > 0
	case NoLabels:
		return whole && len(r.obj.GetLabels()) > 0
	case NoVersion:
		if r.patch != nil {
			data, err := r.patch.Data(r.obj)
			return err == nil && versionIn(data) != nil
		}
		return r.obj != nil && r.Verb == "update" && r.obj.GetResourceVersion() != ""
	case NoPrecondition:
		return r.deletion != nil && r.deletion.Preconditions != nil
	case NoPropagation:
		return r.deletion != nil && r.deletion.PropagationPolicy != nil
	}
	return !r.isRead()
}

// spoil makes a mistake in a request.
func spoil(m Mistake, r *request) {
	switch m {
	case NoOwner:
		r.obj.SetOwnerReferences(nil)
	case NoFinalizer:
		r.obj.SetFinalizers(nil)
	case NoLabels:
		r.obj.SetLabels(nil)
	case NoPrecondition, NoPropagation:
		without := *r.deletion
		if m == NoPrecondition {
			without.Preconditions = nil
		} else {
			without.PropagationPolicy = nil
		}
		r.deletion = &without
	}
}

// unversioned is a patch without an optimistic lock.
type unversioned struct{ client.Patch }

func (p unversioned) Data(obj client.Object) ([]byte, error) {
	data, err := p.Patch.Data(obj)
	if err != nil {
		return nil, err
	}
	if content := versionIn(data); content != nil {
		delete(content["metadata"].(map[string]any), "resourceVersion")
		return json.Marshal(content)
	}
	return data, nil
}

// versionIn returns the content of a patch that has a version.
func versionIn(data []byte) map[string]any {
	var content map[string]any
	if json.Unmarshal(data, &content) != nil {
		return nil
	}
	metadata, _ := content["metadata"].(map[string]any)
	if _, ok := metadata["resourceVersion"]; !ok {
		return nil
	}
	return content
}
