// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (r *request) delete() (any, error) {
	raw, err := r.deleteOptions()
	if err != nil {
		return nil, err
	}
	options := client.DeleteOptions{
		GracePeriodSeconds: raw.GracePeriodSeconds, Preconditions: raw.Preconditions,
		PropagationPolicy: raw.PropagationPolicy, DryRun: raw.DryRun, Raw: raw,
	}
	if r.name == "" {
		return r.deleteCollection(options)
	}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.kind.Group, Kind: r.kind.Plural},
	}
	if r.server == nil {
		return status, r.client.Delete(r.Context(), r.object(), &options)
	}
	before := r.object()
	found := r.client.Get(r.Context(), r.key(), before) == nil
	if err := r.client.Delete(r.Context(), r.object(), &options); err != nil {
		return nil, err
	}
	after := r.object()
	if err := r.client.Get(r.Context(), r.key(), after); err == nil && after.GetUID() == before.GetUID() {
		return after, nil // it waits for finalizers or for its grace period
	}
	if found {
		status.Details.UID = before.GetUID()
		if returnsDeleted[r.kind.Kind] && r.kind.Group == "" {
			return before, nil
		}
	}
	return status, nil
}

// returnsDeleted are the kinds of the core group whose deletion always returns the object.
var returnsDeleted = map[string]bool{
	"PersistentVolume": true, "PersistentVolumeClaim": true, "Pod": true, "PodTemplate": true, "ResourceQuota": true,
	"Service": true, "ServiceAccount": true,
}

// deleteCollection deletes objects, and returns them if they are known.
func (r *request) deleteCollection(options client.DeleteOptions) (any, error) {
	list, err := r.listOptions()
	if err != nil {
		return nil, err
	}
	var deleted any = &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Group: r.kind.Group, Kind: r.kind.Plural},
	}
	if r.server != nil {
		if deleted, err = r.list(); err != nil {
			return nil, err
		}
	}
	return deleted, r.client.DeleteAllOf(
		r.Context(), r.object(), &client.DeleteAllOfOptions{ListOptions: *list, DeleteOptions: options},
	)
}

// deleteOptions returns the options of a delete, which are in its body or in its query.
func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if r.Body == nil || r.ContentLength == 0 {
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&r.query, options, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	content, err := r.body()
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, options)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}
