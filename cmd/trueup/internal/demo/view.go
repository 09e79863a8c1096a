// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/readiness"
)

// view is a site and its children, as read from the API. Objects that do not exist are nil.
type view struct {
	site       *websitev1.Website
	configMaps []corev1.ConfigMap
	deployment *appsv1.Deployment
	service    *corev1.Service
	record     *dns.Record
}

// view reads a site. It returns nil if the site does not exist.
func (d *demo) view(ctx context.Context, from client.Reader, key types.NamespacedName) (*view, error) {
	v := &view{site: &websitev1.Website{}}
	if err := from.Get(ctx, key, v.site); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	owned := func(object metav1.Object) bool { return metav1.IsControlledBy(object, v.site) }
	// A cache copies only what it returns.
	in := &client.ListOptions{
		Namespace: key.Namespace, LabelSelector: labels.SelectorFromSet(labels.Set{websitev1.LabelWebsite: key.Name}),
	}

	var configMaps corev1.ConfigMapList
	if err := from.List(ctx, &configMaps, in); err != nil {
		return nil, err
	}
	for _, item := range configMaps.Items {
		if owned(&item) {
			v.configMaps = append(v.configMaps, item)
		}
	}
	var deployments appsv1.DeploymentList
	if err := from.List(ctx, &deployments, in); err != nil {
		return nil, err
	}
	for _, item := range deployments.Items {
		if owned(&item) {
			v.deployment = &item
		}
	}
	var services corev1.ServiceList
	if err := from.List(ctx, &services, in); err != nil {
		return nil, err
	}
	for _, item := range services.Items {
		if owned(&item) {
			v.service = &item
		}
	}
	record, err := d.records.Lookup(ctx, v.site.Spec.Domain)
	if err == nil && record.Owner == key.String() {
		v.record = &record
	}
	return v, nil
}

// pending describes why the site is not ready, or returns "" if it is ready. It checks the children and does not rely
// on the status of the site alone.
func (v *view) pending() string {
	ready := v.site.Status.GetCondition(websitev1.ConditionReady)
	switch {
	case ready == nil:
		return "waiting for the controller"
	case ready.Status != metav1.ConditionTrue:
		return v.conditions()
	case v.site.Status.ObservedGeneration != v.site.Generation:
		return "the controller has not observed the latest spec"
	case len(v.configMaps) != 1+len(v.site.Spec.Languages):
		return fmt.Sprintf(
			"its status is Ready, but it has %s instead of %d", count(len(v.configMaps), "ConfigMap"),
			1+len(v.site.Spec.Languages),
		)
	case v.deployment == nil:
		return "its status is Ready, but it has no Deployment"
	case !readiness.Of(v.deployment).IsReady():
		return "its status is Ready, but its Deployment is not ready"
	case v.service == nil || v.service.Spec.ClusterIP == "":
		return "its status is Ready, but it has no Service with an address"
	case v.record == nil || v.record.Target != v.service.Spec.ClusterIP:
		return fmt.Sprintf("its status is Ready, but %s does not resolve to %s", v.site.Spec.Domain, v.service.Spec.ClusterIP)
	}
	return ""
}

// conditions formats the conditions that Ready depends on, with reason and message of those that are False.
func (v *view) conditions() string {
	var marks, complaints []string
	for _, condition := range []string{
		websitev1.ConditionContentReady, websitev1.ConditionDeploymentReady, websitev1.ConditionServiceReady,
		websitev1.ConditionRecordReady,
	} {
		mark := "…"
		if c := v.site.Status.GetCondition(condition); c != nil {
			switch c.Status {
			case metav1.ConditionTrue:
				mark = "✓"
			case metav1.ConditionFalse:
				mark = "✗"
				complaints = append(complaints, fmt.Sprintf("(%s: %s)", c.Reason, c.Message))
			}
		}
		marks = append(marks, strings.ToLower(strings.TrimSuffix(condition, "Ready"))+" "+mark)
	}
	return strings.Join(append(marks, complaints...), "  ")
}

// servers formats the number of ready web servers.
func (v *view) servers() string {
	return fmt.Sprintf("%d/%d servers", v.deployment.Status.ReadyReplicas, *v.deployment.Spec.Replicas)
}

// absent reports whether the object does not exist. object determines the kind and is overwritten.
func (d *demo) absent(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	err := d.client.Get(ctx, key, object)
	if apierrs.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// widest returns the width of a column with the labels of sites.
func (d *demo) widest() int {
	width := 0
	for _, key := range d.sites {
		width = max(width, len(d.label(key)))
	}
	return width
}

// short returns the start of a UID, which is sufficient to distinguish two of them.
func short(uid types.UID) string { return string(uid[:min(8, len(uid))]) }

// names formats a list: a, b and c.
func names(all []string) string {
	slices.Sort(all)
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
