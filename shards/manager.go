// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ManagerOptions returns the options of the manager of this replica. It changes options as follows:
//
//   - The leader election of the manager holds the Lease of the shard, and releases it when the manager has ended. The
//     process must then end, too. LeaseDuration, RenewDeadline and RetryPeriod apply to this Lease.
//   - The caches have only the objects of the shard, of the kinds in Options.Kinds. Selectors that are set for these
//     kinds also apply.
//   - The client of the manager does not write after the Lease has expired, see [ErrLapsed].
//
// The config is the REST config of the manager. The error lists all problems of the options. A manager is either
// sharded or leader-elected.
//
// RBAC, with the group and the plural of each of Options.Kinds:
//
//	// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
//	// +kubebuilder:rbac:groups=<group>,resources=<resource>,verbs=get;list;watch;patch
func (s *Shard) ManagerOptions(config *rest.Config, options ctrl.Options) (ctrl.Options, error) {
	var problems []error
	switch {
	case options.LeaderElectionResourceLockInterface != nil:
		problems = append(problems, errors.New("LeaderElectionResourceLockInterface must be nil: the lock is the Lease "+
			"of the shard"))
	case options.LeaderElection:
		problems = append(problems, errors.New("LeaderElection must be false: a manager is either sharded or elected"))
	}
	if config == nil {
		problems = append(problems, errors.New("the REST config is required"))
	}
	caches, err := s.cacheOptions(options)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return options, fmt.Errorf("options of the manager of shard %q:\n%w", s.Name(), err)
	}
	lock, err := s.newLock(options.LeaderElectionConfig, config, options.RenewDeadline, options.Logger)
	if err != nil {
		return options, fmt.Errorf("client for the Lease of shard %q: %w", s.Name(), err)
	}
	options.Cache = caches
	options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
	options.LeaderElectionReleaseOnCancel = true
	if options.LeaderElectionID == "" {
		options.LeaderElectionID = s.Name() // in logs and metrics
	}
	options.NewClient = s.fenced(options.NewClient)
	return options, nil
}

// cacheOptions returns the options of the cache, which select the objects of the shard. The error lists all problems.
func (s *Shard) cacheOptions(options ctrl.Options) (cache.Options, error) {
	scheme, caches := options.Scheme, options.Cache
	if scheme == nil {
		scheme = clientgoscheme.Scheme
	}
	var problems []error
	for _, namespace := range slices.Sorted(maps.Keys(caches.DefaultNamespaces)) {
		if caches.DefaultNamespaces[namespace].LabelSelector != nil {
			problems = append(problems, fmt.Errorf("Cache.DefaultNamespaces[%q].LabelSelector must be nil: it would replace "+
				"the selector of the shard; use Cache.ByObject", namespace))
		}
	}
	byObject := map[client.Object]cache.ByObject{}
	maps.Copy(byObject, caches.ByObject)
	for i, kind := range s.options.Kinds {
		key, err := sameKind(scheme, kind, byObject)
		if err != nil {
			problems = append(problems, fmt.Errorf("Options.Kinds[%d]: %w", i, err))
			continue
		}
		of := byObject[key]
		of.Label = s.narrow(of.Label, caches.DefaultLabelSelector)
		of.Namespaces = maps.Clone(of.Namespaces)
		for namespace, in := range of.Namespaces {
			if in.LabelSelector != nil {
				in.LabelSelector = s.narrow(in.LabelSelector, nil)
				of.Namespaces[namespace] = in
			}
		}
		byObject[key] = of
	}
	caches.ByObject = byObject
	return caches, errors.Join(problems...)
}

// sameKind returns the key for the kind of an object: the one that is set, or the object.
func sameKind(
	scheme *runtime.Scheme, kind client.Object, byObject map[client.Object]cache.ByObject,
) (client.Object, error) {
	gvk, err := apiutil.GVKForObject(kind, scheme)
	if err != nil {
		return nil, err
	}
	for key := range byObject {
		if other, err := apiutil.GVKForObject(key, scheme); err == nil && other == gvk {
			return key, nil
		}
	}
	return kind, nil
}

// narrow returns a selector of the objects of the shard among those that another selector selects, or the default.
func (s *Shard) narrow(selector, byDefault labels.Selector) labels.Selector {
	if selector == nil {
		selector = byDefault
	}
	if selector == nil {
		return s.Selector()
	}
	requirements, _ := s.Selector().Requirements()
	return selector.Add(requirements...)
}
