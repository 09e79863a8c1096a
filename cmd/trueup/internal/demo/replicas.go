// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/cmd/trueup/internal/screen"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/internal/objects/manifests"
	"trueup.dev/internal/sharder"
	"trueup.dev/sandbox"
	"trueup.dev/shards"
)

const (
	// websitesPerReplica is the number of Websites for each replica. Each replica gets some of them.
	websitesPerReplica = 8
	// sharderInterval is the time between two rounds of the sharder.
	sharderInterval = 100 * time.Millisecond
	// watchDelay is how much later than an answer a watch event may arrive.
	watchDelay = 5 * time.Second
)

// replicated is the demo that kills one of several replicas.
type replicated struct {
	*demo
	journal  *journal
	replicas []*replica
	edition  int      // of the pages of all Websites
	victim   *replica // the killed replica
	share    []string // the Websites that the victim had
}

// runReplicas runs the demo of several replicas.
func (d *demo) runReplicas(ctx context.Context, sb *sandbox.Sandbox, published string, o Options) (err error) {
	r := &replicated{demo: d, journal: &journal{}, edition: 1}
	defer r.stop()
	var sharding sync.WaitGroup
	defer sharding.Wait()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer func() { err = causeOf(ctx, err) }()

	d.Step("Start %d replicas of the controller", o.Replicas)
	if _, err := d.connect(ctx, sb, published, nil); err != nil {
		return err
	}
	if err := errors.Join(r.journal.follow(ctx, d.observer), d.ensureDefaultNamespace(ctx)); err != nil {
		return err
	}
	for i := range o.Replicas {
		if err := r.add("replica-"+string(rune('a'+i)), sb, published, o, fail); err != nil {
			return err
		}
	}
	sharding.Go(func() {
		if err := r.sharder().Run(ctx, sharderInterval); err != nil {
			fail(fmt.Errorf("the sharder has ended: %w", awaitControlPlaneEnd(ctx, err)))
		}
	})
	for _, each := range r.replicas {
		if err := r.awaitLease(ctx, each); err != nil {
			return err
		}
	}
	d.Done("a stand-in for the sharder of kubernetes-controller-sharding divides the Websites among them")

	for _, chapter := range []func(context.Context) error{d.apply, r.divide, r.killOne, r.startAgain} {
		if err := errors.Join(chapter(ctx), r.judge(ctx)); err != nil {
			return err
		}
	}
	return r.conclude()
}

// add starts a replica.
func (r *replicated) add(
	name string, sb *sandbox.Sandbox, published string, o Options, fail context.CancelCauseFunc,
) error {
	address, token, leave, err := r.journal.serve(sb.RESTConfig(), name)
	if err != nil {
		return err
	}
	added := &replica{
		replicaOptions: replicaOptions{
			Name: name, API: address, Token: token, Records: published, Verbose: o.Verbosity,
		},
		log: o.Log, leave: leave,
		endedSelf: func(reason string, final bool) {
			if final {
				fail(fmt.Errorf("%s has ended by itself, and is not started again: %s", name, reason))
				return
			}
			r.Progress("%s has ended by itself, and is started again as in a cluster: %s", name, reason)
		},
	}
	if err := added.start(); err != nil {
		leave()
		return err
	}
	r.replicas = append(r.replicas, added)
	return nil
}

// stop returns when all replicas have ended.
func (r *replicated) stop() {
	var stopping sync.WaitGroup
	for _, each := range r.replicas {
		stopping.Go(each.stop)
	}
	stopping.Wait()
}

func (r *replicated) sharder() *sharder.Sharder {
	return &sharder.Sharder{
		Client: r.client, Ring: ring, Namespace: rules.Namespace, Resources: []sharder.Resource{{
			Kind: websitev1.GroupVersion.WithKind("Website"),
			Controlled: []schema.GroupVersionKind{
				appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Service"),
			},
		}},
	}
}

// manyWebsites returns small Websites without web servers: their rollouts would take most of the time of the demo.
func manyWebsites(n int) (documents []manifests.Document) {
	for i := range n {
		name := fmt.Sprintf("site-%02d", i+1)
		site := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"domain": name + ".example.com", "replicas": int64(0),
			"pages": []any{map[string]any{"name": "index", "title": title(1)}},
		}}}
		site.SetGroupVersionKind(websitev1.GroupVersion.WithKind("Website"))
		site.SetNamespace(rules.Namespace)
		site.SetName(name)
		documents = append(documents, manifests.Document{File: "the demo", Number: i + 1, Line: 1, Object: site})
	}
	return documents
}

// title is the title of all pages in an edition.
func title(edition int) string { return fmt.Sprintf("Edition %d", edition) }

// lease returns the Lease of a replica, which is empty if it does not exist.
func (r *replicated) lease(ctx context.Context, of *replica) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: rules.Namespace, Name: of.Name}, lease)
	return lease, client.IgnoreNotFound(err)
}

// awaitLease waits until a replica holds its Lease, and the sharder knows it.
func (r *replicated) awaitLease(ctx context.Context, of *replica) error {
	err := r.observer.await(ctx, r.timeout, func(ctx context.Context) (string, error) {
		lease, err := r.lease(ctx, of)
		holder := lease.Spec.HolderIdentity
		if holder == nil || *holder != of.Name || lease.Labels[shards.StateLabel] != string(sharder.Ready) {
			return of.Name + " does not hold its Lease", err
		}
		return "", err
	})
	if err == nil {
		r.Done("%s is process %d and holds its Lease of %s", of.Name, of.pid(), leaseDuration)
	}
	return err
}

// divide shows that each replica reconciles a share of the Websites.
func (r *replicated) divide(ctx context.Context) error {
	r.Step("Divide %d Websites among %d replicas", len(r.sites), len(r.replicas))
	behind := r.survey()
	err := r.observer.await(ctx, r.timeout, func(ctx context.Context) (string, error) {
		left, err := behind(ctx)
		return describe(left), err
	})
	if err == nil {
		r.report(0)
	}
	return err
}

// killOne kills the replica with the most Websites, and shows that the others take over its share.
func (r *replicated) killOne(ctx context.Context) error {
	owned := r.journal.shares()
	r.victim = slices.MaxFunc(r.replicas, func(a, b *replica) int { return len(owned[a.Name]) - len(owned[b.Name]) })
	r.share = owned[r.victim.Name]
	r.Step("Kill %s, and change all %d Websites", r.victim.Name, len(r.sites))
	r.victim.kill()
	r.Progress("process %d was ended by SIGKILL; the %s of %s wait until its Lease expires",
		r.victim.pid(), count(len(r.share), "Website"), r.victim.Name)
	since := r.journal.total()
	if err := r.change(ctx); err != nil {
		return err
	}
	behind, said := r.survey(), map[string]bool{}
	once := func(format string, args ...any) {
		if !said[format] {
			said[format] = true
			r.Done(format, args...)
		}
	}
	err := r.observer.await(ctx, r.timeout, func(ctx context.Context) (string, error) {
		left, err := behind(ctx)
		if err != nil {
			return "", err
		}
		lease, err := r.lease(ctx, r.victim)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(left)), r.isOfOthers) {
			once("the %s of the other replicas are reconciled", count(len(r.sites)-len(r.share), "Website"))
		}
		if lease.Labels[shards.StateLabel] == string(sharder.Expired) {
			once("the Lease of %s has expired; the sharder waits for another %s, in case it is renewed late",
				r.victim.Name, leaseDuration)
		}
		if n := len(r.journal.shares()[r.victim.Name]); n > 0 {
			return fmt.Sprintf("%s are still assigned to %s", count(n, "Website"), r.victim.Name), nil
		}
		once("the sharder has taken over its Lease, and has assigned its Websites to other replicas")
		return describe(left), nil
	})
	if err == nil {
		r.report(since)
	}
	return err
}

// isOfOthers reports whether the victim did not have a Website.
func (r *replicated) isOfOthers(name string) bool { return !slices.Contains(r.share, name) }

// startAgain starts the killed replica, and shows that it gets its share back.
func (r *replicated) startAgain(ctx context.Context) error {
	r.Step("Start %s again, and change all %d Websites", r.victim.Name, len(r.sites))
	if err := r.victim.start(); err != nil {
		return err
	}
	r.Progress("it waits until its Lease expires, which the sharder holds")
	if err := r.awaitLease(ctx, r.victim); err != nil {
		return err
	}
	since := r.journal.total()
	if err := r.change(ctx); err != nil {
		return err
	}
	behind := r.survey()
	err := r.observer.await(ctx, r.timeout, func(ctx context.Context) (string, error) {
		left, err := behind(ctx)
		if has := r.journal.shares()[r.victim.Name]; !slices.Equal(has, r.share) {
			return fmt.Sprintf("%s has %s, want the %d that it had", r.victim.Name, count(len(has), "Website"),
				len(r.share)), err
		}
		return describe(left), err
	})
	if err == nil {
		r.report(since)
	}
	return err
}

// judge returns an error if a replica wrote what was assigned to another one. It waits for a moment, because the
// assignments arrive later than the answers to the replicas.
func (r *replicated) judge(ctx context.Context) error {
	return r.observer.await(ctx, watchDelay, func(context.Context) (string, error) {
		wrong := r.journal.wrong()
		if len(wrong) == 0 {
			return "", nil
		}
		return fmt.Sprintf("%s were made by a replica that did not have the Website: %s", count(len(wrong), "write"),
			strings.Join(wrong[:min(len(wrong), 3)], "; ")), nil
	})
}

// conclude prints the result.
func (r *replicated) conclude() error {
	r.Step("Result")
	total := r.journal.total()
	if least := r.edition * len(r.sites); total < least {
		return fmt.Errorf("only %d writes of the replicas were observed, want at least %d", total, least)
	}
	r.Done("no Website was lost: all %d have the last of %d changes, and so have their children",
		len(r.sites), r.edition-1)
	r.Done("%d writes of Websites and children, each by the replica that had the Website at that version", total)
	r.Print(fmt.Sprintf("demo: ok: %d websites, %d replicas, 1 of them killed: 0 lost, 0 written by two",
		len(r.sites), len(r.replicas)))
	return nil
}

// change changes the page of each Website.
func (r *replicated) change(ctx context.Context) error {
	r.edition++
	patch := fmt.Appendf(nil, `{"spec":{"pages":[{"name":"index","title":%q}]}}`, title(r.edition))
	for _, key := range r.sites {
		site := &websitev1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := r.client.Patch(ctx, site, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
			return err
		}
	}
	return nil
}

// survey returns a function that describes the Websites which are not ready with the current edition, by their names.
func (r *replicated) survey() func(context.Context) (map[string]string, error) {
	reached := map[types.NamespacedName]bool{}
	return func(ctx context.Context) (map[string]string, error) {
		left := map[string]string{}
		for _, key := range r.sites {
			if reached[key] {
				continue
			}
			v, err := r.view(ctx, r.observer, key)
			if err != nil {
				return nil, err
			}
			if pending := r.behind(v); pending != "" {
				left[key.Name] = pending
			} else {
				reached[key] = true
			}
		}
		return left, nil
	}
}

// behind describes what is missing until a Website is ready with the current edition.
func (r *replicated) behind(v *view) string {
	switch {
	case v == nil:
		return "it does not exist"
	case v.pending() != "":
		return v.pending()
	case !r.journal.hasSeen(v.site):
		return "its last version was not recorded yet"
	case !strings.Contains(v.configMaps[0].Data["index.html"], title(r.edition)):
		return fmt.Sprintf("its ConfigMap does not have %q", title(r.edition))
	}
	return ""
}

// describe describes what is missing for a few Websites.
func describe(left map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if len(parts) == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(left)-len(parts)))
			break
		}
		parts = append(parts, fmt.Sprintf("Website %s: %s", name, left[name]))
	}
	return strings.Join(parts, "; ")
}

// report prints what each replica has, and what it has reconciled since this number of writes.
func (r *replicated) report(since int) {
	owned := r.journal.shares()
	for _, each := range r.replicas {
		if !each.running() {
			r.Done("%s", r.Paint(screen.Faint, each.Name+" does not run"))
			continue
		}
		r.Done("%s has %s, and has reconciled %d", each.Name, count(len(owned[each.Name]), "Website"),
			r.journal.reconciled(each.Name, since))
	}
}
