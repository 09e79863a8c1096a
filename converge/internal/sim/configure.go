// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are options of the manager of a process.
type Options struct {
	// Selectors limit the caches of kinds.
	Selectors map[schema.GroupVersionKind]labels.Selector
	// Client are the options of the client, and NewClient makes it. Nil keeps the client.
	Client    client.Options
	NewClient client.NewClientFunc
	// Election is the leader election. Optional.
	Election *Election
}

// Configure applies options to a process. Its set-up calls it.
func (p *Process) Configure(o Options) error {
	m := p.manager
	if m == nil {
		return errors.New("the scenario must have Setup, not New")
	}
	if p.election != nil || p.selectors != nil {
		return errors.New("the manager already has options")
	}
	p.selectors = o.Selectors
	for _, i := range p.informers {
		if selector := o.Selectors[i.kind]; selector != nil {
			i.selector = selector
			i.begin()
		}
	}
	if o.Election != nil {
		p.election = newElection(p, *o.Election)
	}
	if o.NewClient == nil {
		return nil
	}
	caching := client.CacheOptions{}
	if o.Client.Cache != nil {
		caching = *o.Client.Cache
	}
	caching.Reader = m.cache
	o.Client.Scheme, o.Client.Mapper, o.Client.Cache = m.Scheme, m.Mapper, &caching
	made, err := o.NewClient(m.GetConfig(), o.Client)
	if err != nil {
		return err
	}
	if p.machine.Gate {
		made = p.guarded(made, p.APIReader, m.cache)
	}
	m.Client, p.Client = made, made
	return nil
}
