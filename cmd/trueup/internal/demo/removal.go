// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
)

// deleteSite deletes a site, and shows that all of its objects are removed.
func (d *demo) deleteSite(ctx context.Context) error {
	key := d.sites[len(d.sites)-1]
	d.Step("Delete the Website %s", d.label(key))
	before, err := d.view(ctx, d.client, key)
	if err != nil {
		return err
	}
	if before == nil || before.pending() != "" {
		return fmt.Errorf("the Website %s is no longer ready", d.label(key))
	}
	if !slices.Contains(before.site.Finalizers, websitev1.Finalizer) {
		return fmt.Errorf("the Website %s does not have the finalizer %s", d.label(key), websitev1.Finalizer)
	}
	replicaSets, pods, err := d.dependents(ctx, before)
	if err != nil {
		return err
	}
	if err := d.client.Delete(ctx, before.site.DeepCopy()); err != nil {
		return err
	}
	d.Progress("deleted; the finalizer %s keeps it until its DNS record is removed", websitev1.Finalizer)

	steps := []struct {
		left func(context.Context) (string, error) // describes what still exists
		done string
	}{
		{d.recordLeft(before), fmt.Sprintf("the DNS record %s is removed", before.site.Spec.Domain)},
		{d.siteLeft(before), "the finalizer is removed, and the Website no longer exists"},
		{
			d.childrenLeft(before),
			fmt.Sprintf("its children are removed: %s, 1 Deployment, 1 Service", count(len(before.configMaps), "ConfigMap")),
		},
		{
			d.dependentsLeft(before),
			fmt.Sprintf(
				"garbage collection has removed %s and %s", count(len(replicaSets), "ReplicaSet"), count(len(pods), "Pod"),
			),
		},
	}
	for _, step := range steps {
		if err := d.observer.await(ctx, d.timeout, step.left); err != nil {
			return err
		}
		d.Done("%s", step.done)
	}
	return nil
}

func (d *demo) recordLeft(of *view) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		_, err := d.records.Lookup(ctx, of.site.Spec.Domain)
		if errors.Is(err, dns.ErrNotFound) {
			return "", nil
		}
		return fmt.Sprintf("the DNS record %s is still published", of.site.Spec.Domain), err
	}
}

func (d *demo) siteLeft(of *view) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return d.left(ctx, "Website", of.site, &websitev1.Website{})
	}
}

func (d *demo) childrenLeft(of *view) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		for i := range of.configMaps {
			if left, err := d.left(ctx, "ConfigMap", &of.configMaps[i], &corev1.ConfigMap{}); left != "" || err != nil {
				return left, err
			}
		}
		if left, err := d.left(ctx, "Deployment", of.deployment, &appsv1.Deployment{}); left != "" || err != nil {
			return left, err
		}
		return d.left(ctx, "Service", of.service, &corev1.Service{})
	}
}

// dependents returns the objects that other controllers created for the Deployment of a site.
func (d *demo) dependents(ctx context.Context, of *view) ([]appsv1.ReplicaSet, []corev1.Pod, error) {
	where := []client.ListOption{
		client.InNamespace(of.site.Namespace),
		client.MatchingLabels{websitev1.LabelWebsite: of.site.Name},
	}
	var replicaSets appsv1.ReplicaSetList
	if err := d.client.List(ctx, &replicaSets, where...); err != nil {
		return nil, nil, err
	}
	var pods corev1.PodList
	if err := d.client.List(ctx, &pods, where...); err != nil {
		return nil, nil, err
	}
	return replicaSets.Items, pods.Items, nil
}

func (d *demo) dependentsLeft(of *view) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		replicaSets, pods, err := d.dependents(ctx, of)
		if err != nil || len(replicaSets)+len(pods) == 0 {
			return "", err
		}
		return fmt.Sprintf("%s and %s of %s still exist",
			count(len(replicaSets), "ReplicaSet"), count(len(pods), "Pod"), of.site.Name), nil
	}
}

// left asks the API, not a cache, whether an object still exists.
func (d *demo) left(ctx context.Context, kind string, was, into client.Object) (string, error) {
	gone, err := d.absent(ctx, client.ObjectKeyFromObject(was), into)
	if gone || err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s still exists", kind, was.GetName()), nil
}
