// SPDX-License-Identifier: Apache-2.0

package api

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the version of the Widget.
var GroupVersion = schema.GroupVersion{Group: "benchmarks.trueup.dev", Version: "v1"}

// CRDs contains the CustomResourceDefinition of the Widget.
//
//go:embed crd
var CRDs embed.FS

// AddToScheme registers the Widget with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
