// SPDX-License-Identifier: Apache-2.0

package sharder

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/shards"
)

// identity is the holder of the Leases that the sharder has taken over.
const identity = "shardlease-controller"

// concurrentMoves limits the requests at the same time.
const concurrentMoves = 8

// State is the state of a shard.
type State string

// The states. The objects of a shard that is dead are assigned to others.
const (
	Ready     State = "ready"     // it renews its Lease
	Expired   State = "expired"   // its Lease expired less than the duration of the Lease ago
	Uncertain State = "uncertain" // its Lease expired earlier, and the sharder takes it over
	Dead      State = "dead"      // it has released its Lease, or the sharder has taken it over
)

// Resource is a kind that is divided among the shards.
type Resource struct {
	Kind       schema.GroupVersionKind
	Controlled []schema.GroupVersionKind
}

// Sharder assigns the objects of one namespace to shards.
type Sharder struct {
	// Client reads from the API server.
	Client client.Client
	Ring   string
	// Namespace is the namespace of the Leases and of the objects.
	Namespace string
	Resources []Resource
}

// Run assigns objects until ctx ends. Interval is the time between two rounds.
func (s *Sharder) Run(ctx context.Context, interval time.Duration) error {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		if err := s.Round(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// Round looks at all Leases and objects once.
func (s *Sharder) Round(ctx context.Context) error {
	available, err := s.shards(ctx)
	if err != nil {
		return err
	}
	errs := []error{}
	for _, resource := range s.Resources {
		errs = append(errs, s.assign(ctx, available, resource.Kind, nil))
		for _, kind := range resource.Controlled {
			errs = append(errs, s.assign(ctx, available, kind, &resource.Kind))
		}
	}
	return errors.Join(errs...)
}

// shards returns the names of the shards that are available.
func (s *Sharder) shards(ctx context.Context) (map[string]bool, error) {
	leases := &coordinationv1.LeaseList{}
	inRing := client.MatchingLabels{shards.RingLabel: s.Ring}
	if err := s.Client.List(ctx, leases, client.InNamespace(s.Namespace), inRing); err != nil {
		return nil, err
	}
	available, errs := map[string]bool{}, []error{}
	for i := range leases.Items {
		lease := &leases.Items[i]
		state := stateOf(lease, time.Now())
		changed := lease.Labels[shards.StateLabel] != string(state)
		if state == Uncertain {
			now := metav1.NowMicro()
			lease.Spec.HolderIdentity, lease.Spec.AcquireTime, lease.Spec.RenewTime = new(identity), &now, &now
			state, changed = Dead, true
		}
		if changed {
			lease.Labels = maps.Clone(lease.Labels)
			lease.Labels[shards.StateLabel] = string(state)
			switch err := s.Client.Update(ctx, lease); {
			case apierrs.IsConflict(err) || apierrs.IsNotFound(err):
				state = Expired // it was renewed: the next round knows more
			case err != nil:
				errs = append(errs, err)
			}
		}
		if state != Dead {
			available[lease.Name] = true
		}
	}
	return available, errors.Join(errs...)
}

func stateOf(lease *coordinationv1.Lease, now time.Time) State {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity != lease.Name || spec.RenewTime == nil ||
		spec.LeaseDurationSeconds == nil {
		return Dead
	}
	duration := time.Duration(*spec.LeaseDurationSeconds) * time.Second
	switch expired := now.Sub(spec.RenewTime.Add(duration)); {
	case expired < 0:
		return Ready
	case expired < duration:
		return Expired
	}
	return Uncertain
}

// assign assigns the objects of a kind. Controlled objects go where their owner goes, at once.
func (s *Sharder) assign(
	ctx context.Context, available map[string]bool, kind schema.GroupVersionKind, owner *schema.GroupVersionKind,
) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := s.Client.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	errs := make([]error, len(list.Items))
	var moves sync.WaitGroup
	slots := make(chan struct{}, concurrentMoves)
	for i := range list.Items {
		obj := &list.Items[i]
		obj.SetGroupVersionKind(kind)
		key := obj.Name
		if owner != nil {
			ref := metav1.GetControllerOfNoCopy(obj)
			if ref == nil || ref.Kind != owner.Kind || ref.APIVersion != owner.GroupVersion().String() {
				continue
			}
			key = ref.Name
		}
		slots <- struct{}{}
		moves.Go(func() {
			errs[i] = s.move(ctx, obj, Rendezvous(key, available), available, owner == nil)
			<-slots
		})
	}
	moves.Wait()
	return errors.Join(errs...)
}

// move assigns an object to a shard, or asks its shard to release it first.
func (s *Sharder) move(
	ctx context.Context, obj *metav1.PartialObjectMetadata, to string, available map[string]bool, drains bool,
) error {
	label, drain := shards.ShardLabel(s.Ring), shards.DrainLabel(s.Ring)
	from := obj.Labels[label]
	if to == "" || to == from {
		return nil
	}
	before := obj.DeepCopy()
	if obj.Labels = maps.Clone(obj.Labels); obj.Labels == nil {
		obj.Labels = map[string]string{}
	}
	if drains && available[from] {
		obj.Labels[drain] = "true"
	} else {
		delete(obj.Labels, drain)
		obj.Labels[label] = to
	}
	if maps.Equal(before.Labels, obj.Labels) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.Client.Patch(ctx, obj, patch); err != nil && !apierrs.IsConflict(err) && !apierrs.IsNotFound(err) {
		return fmt.Errorf("assign %s %s: %w", obj.Kind, obj.Name, err)
	}
	return nil
}

// Rendezvous returns the shard with the highest hash together with a key, or "" if there are no shards. If a shard
// comes or goes, only its own keys move.
func Rendezvous(key string, among map[string]bool) (chosen string) {
	highest := uint64(0)
	for _, shard := range slices.Sorted(maps.Keys(among)) {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(shard + "/" + key))
		if sum := mix(hash.Sum64()); chosen == "" || sum > highest {
			chosen, highest = shard, sum
		}
	}
	return chosen
}

// mix makes all bits of a hash depend on all others: the high bits of FNV change little with the last bytes.
func mix(hash uint64) uint64 {
	hash ^= hash >> 33
	hash *= 0xff51afd7ed558ccd
	return hash ^ hash>>33
}
