// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Page is a kind that sets its own defaults and validates itself.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Title string `json:"title,omitempty"`
}

func (p *Page) DeepCopyObject() runtime.Object {
	copied := *p
	copied.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &copied
}

var (
	_ webhook.Defaulter       = (*Page)(nil)
	_ webhook.Validator       = (*Page)(nil)
	_ webhook.CustomDefaulter = titles{}
)

func (p *Page) Default() { p.Title = "untitled" }

func (p *Page) ValidateCreate() (admission.Warnings, error) { return admission.Warnings{"new"}, nil }

func (p *Page) ValidateUpdate(old runtime.Object) (admission.Warnings, error) {
	if old.(*Page).Title != p.Title {
		return nil, errors.New("the title is immutable")
	}
	return nil, nil
}

func (p *Page) ValidateDelete() (admission.Warnings, error) { return nil, nil }

// titles sets the defaults of kinds of Kubernetes.
type titles struct{}

func (titles) Default(ctx context.Context, object runtime.Object) error {
	object.(*corev1.ConfigMap).Data = map[string]string{"title": "untitled"}
	return nil
}

// Webhooks serves the webhooks of the kinds.
func Webhooks(mgr manager.Manager) error {
	if err := ctrl.NewWebhookManagedBy(mgr).For(&Page{}).Complete(); err != nil {
		return err
	}
	return builder.WebhookManagedBy(mgr).For(&corev1.ConfigMap{}).WithDefaulter(titles{}).Complete()
}
