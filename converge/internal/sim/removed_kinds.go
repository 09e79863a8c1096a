// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi/httpapi"
	"trueup.dev/internal/memapi/kinds"
)

// absence is how long a removed kind is not served. It is longer than the intervals at which controllers try to watch a
// kind again, and ask discovery.
const absence = 16 * time.Second

// removedKinds are the kinds whose CustomResourceDefinitions another client has deleted.
type removedKinds struct {
	*scene

	watches     *watches
	processes   *processes
	versions    *versions
	permissions *permissions

	mu sync.Mutex
	// known are the processes that ran when a kind was removed, by the kind. Their mappers still know it, as the mapper
	// of a manager does.
	known map[schema.GroupKind][]*Process
	// returned is how often a kind was served again.
	returned int
}

// faultsOf returns the fault that removes a kind, if the reconciler can create all of its objects again.
func (k *removedKinds) faultsOf(gvk schema.GroupVersionKind) inject.Set {
	running := k.versions.running
	if !k.machine.Faults.Has(inject.KindRemoved) || gvk.GroupKind() == running.Primary.GroupKind() {
		return 0
	}
	kind, ok := running.Registry.For(gvk)
	if _, removed := k.removed(gvk.GroupKind()); !ok || !kind.Custom || removed {
		return 0
	}
	for _, obj := range k.world.Server.List(gvk) {
		if !k.world.Own[obj.GetUID()] || obj.GetDeletionTimestamp() != nil || len(obj.GetFinalizers()) > 0 {
			return 0
		}
	}
	return inject.SetOf(inject.KindRemoved)
}

// removed reports whether a kind is not served, and which processes ran when it was removed.
func (k *removedKinds) removed(kind schema.GroupKind) ([]*Process, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	processes, removed := k.known[kind]
	return processes, removed
}

// returns returns how often a kind was served again.
func (k *removedKinds) returns() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.returned
}

// any reports whether a kind is not served.
func (k *removedKinds) any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.known) > 0
}

func (k *removedKinds) set(kind schema.GroupKind, processes []*Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[schema.GroupKind][]*Process{}
	}
	k.known[kind] = processes
}

// remove deletes the objects of a kind, which is served again after some time.
func (k *removedKinds) remove(gvk schema.GroupVersionKind) {
	k.trace.Fault(phrase.AnotherClient, "delete the definition of "+gvk.Kind, inject.KindRemoved)
	for _, obj := range slices.Clone(k.world.Server.List(gvk)) {
		k.oracles.Duplicates.Explain(gvk, client.ObjectKeyFromObject(obj))
		_ = k.world.Other.Delete(context.Background(), world.WithKind(obj, gvk), background) // it exists
	}
	k.set(gvk.GroupKind(), slices.Clone(*k.processes))
	k.watches.forward()
	k.scheduler.after(absence, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.known, gvk.GroupKind())
		k.returned++
		k.trace.Note("api server", "serves "+gvk.Kind+" again")
		k.scheduler.changed()
	})
}

// atStart removes kinds before the first process starts.
func (k *removedKinds) atStart() {
	for _, kind := range k.versions.running.Registry.Kinds() {
		k.at(inject.Site{Act: "start", Kind: kind.Kind}, kind.GroupVersionKind)
	}
}

// disturb removes kinds when the controller is idle, and reports whether it has removed one.
func (k *removedKinds) disturb(step types.NamespacedName) bool {
	disturbed := false
	for _, gvk := range k.world.Server.Kinds() {
		disturbed = k.at(inject.Site{Act: "quiet", Kind: gvk.Kind, Key: step}, gvk) || disturbed
	}
	return disturbed
}

// at removes a kind if the schedule has the fault at a site, and reports whether it has.
func (k *removedKinds) at(site inject.Site, gvk schema.GroupVersionKind) bool {
	faults := k.faultsOf(gvk)
	if faults == 0 || k.faults.at(site, faults) != inject.KindRemoved {
		return false
	}
	k.remove(gvk)
	return true
}

// refuse returns the error of a call about a kind that is not served. What a cache has can be read.
func (k *removedKinds) refuse(c *call) error {
	kind := c.GVK.GroupKind()
	processes, removed := k.removed(kind)
	if !removed || c.Outside || c.Cached && c.process.existing(c.GVK) != nil {
		return nil
	}
	if c.Cached || !slices.Contains(processes, c.process) {
		return &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{c.GVK.Version}}
	}
	p := k.permissions.forKind(verbs[c.Act], c.GVK)
	return apierrs.NewGenericServerResponse(
		http.StatusNotFound, p.Verb, schema.GroupResource{Group: p.Group, Resource: p.Resource}, c.Key.Name,
		"404 page not found", 0, true,
	)
}

// served returns a registry without the kinds that are not served.
func (k *removedKinds) served(registry *kinds.Registry) *kinds.Registry {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind := range k.known {
		registry = registry.Without(kind)
	}
	return registry
}

// processMapper is the mapper of a process. It does not know kinds that were removed before the process started.
type processMapper struct {
	meta.RESTMapper

	process *Process
}

func (m *processMapper) check(kind schema.GroupKind, versions []string) error {
	processes, removed := m.process.gateway.removed.removed(kind)
	if removed && !slices.Contains(processes, m.process) {
		return &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return nil
}

// RESTMapping implements [meta.RESTMapper].
func (m *processMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if err := m.check(kind, versions); err != nil {
		return nil, err
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// RESTMappings implements [meta.RESTMapper].
func (m *processMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if err := m.check(kind, versions); err != nil {
		return nil, err
	}
	return m.RESTMapper.RESTMappings(kind, versions...)
}

// processTransport answers the HTTP requests of a process, with the kinds that are served.
type processTransport struct{ process *Process }

// RoundTrip implements [http.RoundTripper].
func (t processTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := t.process
	live := newProcessClient(p.world.Server.Client(p.program.Client), p, true)
	registry := p.gateway.removed.served(p.version.Registry)
	transport := httpapi.Transport{Client: &watchingClient{live}, Registry: registry}
	return transport.RoundTrip(req)
}
