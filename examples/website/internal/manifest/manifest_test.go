// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/manifest"
)

func site(name string) *websitev1.Website {
	return &websitev1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       websitev1.WebsiteSpec{Image: "nginx", Replicas: new(int32(2))},
	}
}

func TestContentName(t *testing.T) {
	tests := map[string]struct {
		site, language, want string
	}{
		"original":                 {site: "shop", language: "", want: "shop-content"},
		"translation":              {site: "shop", language: "pt-br", want: "shop-lang-pt-br"},
		"site named like a child":  {site: "shop-lang-de", language: "de", want: "shop-lang-de-lang-de"},
		"site named like a prefix": {site: "shop-lang", language: "de", want: "shop-lang-lang-de"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := manifest.ContentName(site(tc.site), tc.language)
			if got != tc.want {
				t.Errorf("ContentName() = %s, want %s", got, tc.want)
			}
			if is := manifest.IsLanguage(site(tc.site), got); is != (tc.language != "") {
				t.Errorf("IsLanguage(%s) = %t", got, is)
			}
			if code := manifest.LanguageOf(got); tc.language != "" && code != tc.language {
				t.Errorf("LanguageOf(%s) = %s, want %s", got, code, tc.language)
			}
		})
	}
}

func TestDeployment_mountsEveryFileOnce(t *testing.T) {
	deployment := manifest.Deployment(site("shop"), manifest.Files{
		"":   {"index.html": "hello", "style.css": "body {}"},
		"de": {"index.html": "hallo"},
	})
	got := map[string]string{}
	for _, source := range deployment.Spec.Template.Spec.Volumes[0].Projected.Sources {
		for _, item := range source.ConfigMap.Items {
			got[item.Path] = source.ConfigMap.Name + "/" + item.Key
		}
	}
	want := map[string]string{
		"index.html":    "shop-content/index.html",
		"style.css":     "shop-content/style.css",
		"de/index.html": "shop-lang-de/index.html",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounted files (-want +got):\n%s", diff)
	}
}

func TestDeployment_rollsOverWithTheContent(t *testing.T) {
	hash := func(files manifest.Files) string {
		return manifest.Deployment(site("shop"), files).Spec.Template.Annotations[websitev1.AnnotationContentHash]
	}
	before := hash(manifest.Files{"": {"index.html": "hello"}})
	if before == "" || before == hash(manifest.Files{"": {"index.html": "hello!"}}) {
		t.Errorf("the hash %q is empty, or does not change with the content", before)
	}
	if before != hash(manifest.Files{"": {"index.html": "hello"}}) {
		t.Error("the hash of the same content differs: servers would roll over needlessly")
	}
}

func TestService_selectsThePods(t *testing.T) {
	pods := manifest.Deployment(site("shop"), nil).Spec.Template
	service := manifest.Service(site("shop"))
	if diff := cmp.Diff(pods.Labels, service.Spec.Selector); diff != "" {
		t.Errorf("selector against labels of the pods (-want +got):\n%s", diff)
	}
	if got, want := service.Spec.Ports[0].TargetPort.StrVal, pods.Spec.Containers[0].Ports[0].Name; got != want {
		t.Errorf("the target port of the Service is %q, the container has %q", got, want)
	}
}
