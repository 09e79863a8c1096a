// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/operator"
	"trueup.dev/reconcilers"
)

// Does a controller say at its start, before there is an object, that the definition of its kind has no status
// subresource?
func TestStatusIsCheckedAtTheStart(t *testing.T) {
	for name, controller := range map[string]setup{
		"root": strictRoot(func(*strict) {}),
		"handler": func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
			return (&operator.Controller[*strict]{Config: c, Handlers: []reconcilers.SubReconciler[*strict]{
				operator.NewOpinionated[*strict]("trueup.dev/strict", &operator.TypedReconciler[*strict]{}),
			}}).SetupWithManager(ctx, mgr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.addStrict(statuslessKind)
			lines := make(chan string, 100)
			log := funcr.New(func(_, args string) {
				select {
				case lines <- args:
				default:
				}
			}, funcr.Options{})
			e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
				return controller(logr.NewContext(ctx, log), mgr, c)
			})
			deadline := time.After(30 * time.Second)
			for {
				select {
				case line := <-lines:
					if strings.Contains(line, "no status subresource") &&
						strings.Contains(line, "+kubebuilder:subresource:status") {
						return
					}
				case <-deadline:
					t.Fatal("nothing says that the status is not served")
				}
			}
		})
	}
}
