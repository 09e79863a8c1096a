// SPDX-License-Identifier: Apache-2.0

// Package v1 has the kind of the tutorial on testing.
package v1

import (
	"context"
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/apis"
)

// region testing-kind

// Banner is a line of text on a web site. It is shown until it lapses.
type Banner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BannerSpec   `json:"spec"`
	Status BannerStatus `json:"status,omitempty"`
}

// BannerSpec is what a Banner shows.
type BannerSpec struct {
	TextFrom string      `json:"textFrom"` // the name of the ConfigMap that has the text
	Until    metav1.Time `json:"until"`    // when the banner lapses
}

// BannerStatus reports whether the Banner is shown.
type BannerStatus struct {
	apis.Status `json:",inline"`
}

// endregion

var conditions = apis.NewLivingConditionSet()

// InitializeConditions adds the condition Ready.
func (s *BannerStatus) InitializeConditions(ctx context.Context) {
	conditions.ManageWithContext(ctx, s).InitializeConditions()
}

// MarkShown sets Ready to True.
func (s *BannerStatus) MarkShown(ctx context.Context) {
	conditions.ManageWithContext(ctx, s).MarkTrue(apis.ConditionReady, "Shown", "")
}

// MarkNotShown sets Ready to False.
func (s *BannerStatus) MarkNotShown(ctx context.Context, reason, messageFormat string, a ...any) {
	conditions.ManageWithContext(ctx, s).MarkFalse(apis.ConditionReady, reason, messageFormat, a...)
}

// BannerList is a list of Banners.
type BannerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Banner `json:"items"`
}

// DeepCopy returns a copy.
func (b *Banner) DeepCopy() *Banner {
	out := *b
	out.ObjectMeta = *b.ObjectMeta.DeepCopy()
	out.Status.Status = *b.Status.DeepCopy()
	return &out
}

// DeepCopyObject returns a copy.
func (b *Banner) DeepCopyObject() runtime.Object { return b.DeepCopy() }

// DeepCopyObject returns a copy.
func (l *BannerList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.DeepCopy() // that of ListMeta
	out.Items = make([]Banner, 0, len(l.Items))
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return &out
}

// CRDs has the CustomResourceDefinition, in YAML.
//
//go:embed banners.yaml
var CRDs embed.FS

// GroupVersion is that of Banners.
var GroupVersion = schema.GroupVersion{Group: "docs.trueup.dev", Version: "v1"}

// NewScheme returns a scheme with Banners and the kinds of Kubernetes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err) // only for a Go type that is registered twice
	}
	scheme.AddKnownTypes(GroupVersion, &Banner{}, &BannerList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return scheme
}
