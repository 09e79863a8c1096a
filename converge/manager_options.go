// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/converge/internal/sim"
)

// minLeaseDuration is the shortest duration of a Lease. Between two steps of a run, about a minute passes in which no
// process does anything.
const minLeaseDuration = 10 * time.Minute

// ApplyOptions makes a manager that Setup was called with behave as one that was created with these options. Call it
// first in Setup, with the options of the real program. These options have an effect:
//
//   - LeaderElection, with LeaderElectionID and LeaderElectionNamespace, or LeaderElectionResourceLockInterface, and
//     LeaseDuration, RenewDeadline and RetryPeriod. The process acquires its Lease, and renews it in virtual time, with
//     requests that may fail. Its controllers start when it holds the Lease, and it ends when it has lost the Lease. A
//     Lease must last at least 10 minutes, as virtual time passes quickly. The default durations are too short. The
//     Leases are not compared at the end, and renewals are not work for which a Settle waits.
//   - The label selectors of Cache.ByObject, which replace [Scenario.CacheSelectors] for the same kind.
//   - NewClient, with Client. The client that it makes sends HTTP requests to the API server of the scenario.
//
// Other options have no effect. Options of the cache that limit or change its objects in another way are refused. The
// error lists all problems.
func ApplyOptions(mgr manager.Manager, options manager.Options) error {
	process := EnvOf(mgr).process
	if process == nil {
		return errors.New("options of a manager: the manager is not the one of a scenario")
	}
	applied := sim.Options{Client: options.Client, NewClient: options.NewClient}
	var problems [3]error
	applied.Selectors, problems[0] = selectorsOf(mgr, options.Cache)
	applied.Election, problems[1] = electionOf(mgr, process, options)
	if problems[0] == nil && problems[1] == nil {
		problems[2] = process.Configure(applied)
	}
	if err := errors.Join(problems[:]...); err != nil {
		return fmt.Errorf("options of a manager:\n%w", err)
	}
	return nil
}

// selectorsOf returns the selectors of caches.
func selectorsOf(mgr manager.Manager, options cache.Options) (map[schema.GroupVersionKind]labels.Selector, error) {
	var problems []error
	refuse := func(set bool, field string) {
		if set {
			problems = append(problems, fmt.Errorf("%s is not supported in a scenario", field))
		}
	}
	refuse(options.DefaultLabelSelector != nil, "Cache.DefaultLabelSelector")
	refuse(options.DefaultFieldSelector != nil, "Cache.DefaultFieldSelector")
	refuse(options.DefaultTransform != nil, "Cache.DefaultTransform")
	refuse(len(options.DefaultNamespaces) > 0, "Cache.DefaultNamespaces")
	selectors := map[schema.GroupVersionKind]labels.Selector{}
	for obj, of := range options.ByObject {
		gvk, err := apiutil.GVKForObject(obj, mgr.GetScheme())
		if err != nil {
			problems = append(problems, fmt.Errorf("Cache.ByObject: %w", err))
			continue
		}
		field := "Cache.ByObject[" + gvk.Kind + "]"
		refuse(of.Field != nil, field+".Field")
		refuse(of.Transform != nil, field+".Transform")
		refuse(len(of.Namespaces) > 0, field+".Namespaces")
		if of.Label != nil {
			selectors[gvk] = of.Label
		}
	}
	return selectors, errors.Join(problems...)
}

// electionOf returns the leader election of a process, or nil if it has none.
func electionOf(mgr manager.Manager, process *sim.Process, options manager.Options) (*sim.Election, error) {
	if !options.LeaderElection {
		return nil, nil
	}
	var problems []error
	if lease := coordinationv1.SchemeGroupVersion.WithKind("Lease"); !mgr.GetScheme().Recognizes(lease) {
		problems = append(problems, fmt.Errorf("the Scheme of the scenario must have %s", lease))
	}
	lock := options.LeaderElectionResourceLockInterface
	if lock == nil {
		for _, required := range []struct{ field, value string }{
			{"LeaderElectionID", options.LeaderElectionID}, {"LeaderElectionNamespace", options.LeaderElectionNamespace},
		} {
			if required.value == "" {
				problems = append(problems, fmt.Errorf("%s is required", required.field))
			}
		}
		leases, err := coordinationclient.NewForConfig(mgr.GetConfig())
		problems = append(problems, err)
		lock = &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{
				Namespace: options.LeaderElectionNamespace, Name: options.LeaderElectionID,
			},
			Client: leases, Labels: options.LeaderElectionLabels,
			LockConfig: resourcelock.ResourceLockConfig{Identity: process.Identity()},
		}
	}
	duration := func(field string, d *time.Duration) time.Duration {
		if d == nil {
			problems = append(problems, fmt.Errorf("%s is required", field))
			return 0
		}
		return *d
	}
	e := &sim.Election{
		Lock: lock, LeaseDuration: duration("LeaseDuration", options.LeaseDuration),
		RenewDeadline: duration("RenewDeadline", options.RenewDeadline),
		RetryPeriod:   duration("RetryPeriod", options.RetryPeriod),
	}
	if options.LeaseDuration != nil && e.LeaseDuration < minLeaseDuration {
		problems = append(problems, fmt.Errorf("LeaseDuration must be at least %s, got %s: virtual time passes quickly",
			minLeaseDuration, e.LeaseDuration))
	}
	if options.LeaseDuration != nil && options.RenewDeadline != nil && e.LeaseDuration <= e.RenewDeadline {
		problems = append(problems, errors.New("LeaseDuration must be greater than RenewDeadline"))
	}
	if options.RetryPeriod != nil && options.RenewDeadline != nil &&
		(e.RetryPeriod <= 0 || e.RenewDeadline <= e.RetryPeriod) {
		problems = append(problems, errors.New("RetryPeriod must be greater than 0 and less than RenewDeadline"))
	}
	return e, errors.Join(problems...)
}
