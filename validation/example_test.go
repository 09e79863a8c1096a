// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"context"
	"errors"
	"fmt"

	"trueup.dev/validation"
)

// pipeline is a validator with nested validators.
type pipeline struct {
	Name  string
	Image string
	Steps []validation.Validator
}

func (p *pipeline) Validate(ctx context.Context) error {
	var errs []error
	if p.Name == "" {
		errs = append(errs, errors.New("Name is required"))
	}
	if p.Image == "" {
		errs = append(errs, errors.New("Image is required"))
	}
	if validation.IsRecursive(ctx) {
		for i, step := range p.Steps {
			if err := step.Validate(ctx); err != nil {
				errs = append(errs, fmt.Errorf("Steps[%d]: %w", i, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Default implements [validation.Defaulter].
func (p *pipeline) Default(context.Context) error {
	if p.Image == "" {
		p.Image = "busybox"
	}
	return nil
}

func ExampleValidator() {
	var v validation.Validator = &pipeline{}
	fmt.Println(v.Validate(context.Background()))
	// Output:
	// Name is required
	// Image is required
}

func ExampleDefaulter() {
	p := &pipeline{Name: "build"}

	var d validation.Defaulter = p
	err := d.Default(context.Background())

	fmt.Println(p.Image, err)
	// Output: busybox <nil>
}

func ExampleWithRecursive() {
	root := &pipeline{
		Name:  "release",
		Image: "busybox",
		Steps: []validation.Validator{&pipeline{Name: "build"}},
	}

	ctx := context.Background()
	fmt.Println("shallow:", root.Validate(ctx))

	ctx = validation.WithRecursive(ctx)
	fmt.Println("recursive:", root.Validate(ctx))
	// Output:
	// shallow: <nil>
	// recursive: Steps[0]: Image is required
}

func ExampleIsRecursive() {
	ctx := context.Background()
	fmt.Println(validation.IsRecursive(ctx), validation.IsRecursive(validation.WithRecursive(ctx)))
	// Output: false true
}
