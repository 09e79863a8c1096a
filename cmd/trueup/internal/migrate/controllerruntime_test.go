// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Kinds with methods that were their webhooks keep these: controller-runtime no longer calls the methods by itself.
// Other changes of controller-runtime that do not compile are named.
func TestControllerRuntime(t *testing.T) {
	const methods = "func (*Page) Default() {}\n" +
		"func (*Page) ValidateCreate() error { return nil }\n" +
		"func (*Page) ValidateUpdate(old runtime.Object) error { return nil }\n" +
		"func (*Page) ValidateDelete() error { return nil }\n"
	const row = "; docs/migration/v0.12-v0.22.md, row ValidateCreate()"
	adapters := "WithDefaulter(webhooks.Defaulter[*Page]{}).WithValidator(webhooks.Validator[*Page]{})"
	for name, c := range map[string]struct {
		before string
		want   string // empty if nothing changes
		left   []string
	}{
		"a literal": {
			methods + "var err = ctrl.NewWebhookManagedBy(mgr).For(&Page{}).Complete()",
			methods + "var err = ctrl.NewWebhookManagedBy(mgr, &Page{})." + adapters + ".Complete()", nil,
		},
		"other options first": {
			methods + "var err = ctrl.NewWebhookManagedBy(mgr).RecoverPanic().For(&Page{}).Complete()",
			methods + "var err = ctrl.NewWebhookManagedBy(mgr, &Page{}).RecoverPanic()." + adapters + ".Complete()", nil,
		},
		"a receiver, on several lines": {
			methods + "func (p *Page) SetUp() error {\n\treturn ctrl.NewWebhookManagedBy(mgr).\n\t\tFor(p).\n\t\tComplete()\n}",
			methods + "func (p *Page) SetUp() error {\n\treturn ctrl.NewWebhookManagedBy(mgr, p).\n\t\t" +
				strings.ReplaceAll(adapters, ".With", ".\n\t\tWith") + ".\n\t\tComplete()\n}", nil,
		},
		"with a defaulter of its own": {
			methods + "var err = ctrl.NewWebhookManagedBy(mgr).For(&Page{}).WithDefaulter(d).Complete()",
			methods + "var err = ctrl.NewWebhookManagedBy(mgr, &Page{}).WithValidator(webhooks.Validator[*Page]{})." +
				"WithCustomDefaulter(d).Complete()", nil,
		},
		"some of the methods": {
			"func (*Page) ValidateCreate() error { return nil }\n" +
				"var err = ctrl.NewWebhookManagedBy(mgr).For(&Page{}).Complete()",
			"func (*Page) ValidateCreate() error { return nil }\n" +
				"var err = ctrl.NewWebhookManagedBy(mgr, &Page{}).Complete()", nil,
		},
		"a kind of Kubernetes": {
			"var err = ctrl.NewWebhookManagedBy(mgr).For(&corev1.Pod{}).Complete()",
			"var err = ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).Complete()", nil,
		},
		"a kind of another module": {
			"var err = ctrl.NewWebhookManagedBy(mgr).For(&api.Page{}).Complete()",
			"var err = ctrl.NewWebhookManagedBy(mgr, &api.Page{}).Complete()",
			[]string{"methods Default and Validate… that this kind may have are no longer called" + row},
		},
		"assertions": {
			"var _ webhook.Defaulter = &Page{}\n\n// A comment.\nvar _ webhook.Validator = &Page{}\n\n" +
				"var (\n\t_ webhook.Defaulter = &Page{} // a comment\n\t_ runtime.Object    = &Page{}\n)",
			"var (\n\t_ runtime.Object = &Page{}\n)", nil,
		},
		"a group of assertions, with a marker": {
			"// +kubebuilder:webhook:path=/mutate\nvar (\n\t_ webhook.Defaulter = &Page{}\n" +
				"\t_ webhook.Validator = &Page{}\n)\n\nfunc f() {}",
			"// +kubebuilder:webhook:path=/mutate\n\nfunc f() {}", nil,
		},
		"options of a manager that have moved": {
			"var o = ctrl.Options{MetricsBindAddress: \":8080\", Port: 9443, LeaderElection: true}", "",
			[]string{
				"ctrl.Options has no field MetricsBindAddress; docs/migration/v0.12-v0.22.md, row MetricsBindAddress",
				"ctrl.Options has no field Port; docs/migration/v0.12-v0.22.md, row MetricsBindAddress",
			},
		},
		"a queue without a type": {
			"func f(q workqueue.RateLimitingInterface) {}", "",
			[]string{
				"handlers of events get a queue with a type; docs/migration/v0.12-v0.22.md, row workqueue.RateLimitingInterface",
			},
		},
		"other uses of the interfaces": {
			"func f(d webhook.Defaulter, v admission.Validator[*Page]) {\n\t_ = admission.DefaultingWebhookFor(nil, d)\n}", "",
			[]string{"webhook.Defaulter does not exist" + row, "admission.DefaultingWebhookFor does not exist" + row},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const page = "\ntype Page struct{ runtime.Object }\n\n"
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "go.mod"), oldGoMod)
			source := "package m\n\nimport (\n"
			for _, imported := range []string{
				`"example.com/api"`, `_ "github.com/vmware-labs/reconciler-runtime/reconcilers"`, `corev1 "k8s.io/api/core/v1"`,
				`"k8s.io/apimachinery/pkg/runtime"`, `"k8s.io/client-go/util/workqueue"`, `ctrl "sigs.k8s.io/controller-runtime"`,
				`"sigs.k8s.io/controller-runtime/pkg/webhook"`, `"sigs.k8s.io/controller-runtime/pkg/webhook/admission"`,
			} {
				source += "\t" + imported + "\n"
			}
			source += ")\n" + page + c.before + "\n"
			writeFile(t, filepath.Join(dir, "m.go"), source)
			var out bytes.Buffer
			err := Run(t.Context(), &out, Options{Dir: dir, Force: true})
			if want := c.left != nil; errors.Is(err, ErrLeft) != want || err != nil && !want {
				t.Errorf("error %v, want %v: %t", err, ErrLeft, want)
			}
			_, got, _ := strings.Cut(readFile(t, filepath.Join(dir, "m.go")), page)
			want := c.want
			if want == "" {
				want = c.before
			}
			if diff := cmp.Diff(want+"\n", got); diff != "" {
				t.Errorf("m.go (-want +got):\n%s", diff)
			}
			for _, text := range c.left {
				if !strings.Contains(out.String(), text+"\n") {
					t.Errorf("%q is not printed:\n%s", text, out.String())
				}
			}
		})
	}
}
