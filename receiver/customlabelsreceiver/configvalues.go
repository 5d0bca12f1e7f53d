package customlabelsreceiver

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

// mayBeEmpty is the key whose absence the log tells.
const mayBeEmpty = "labels::hash_salt"

// refuseEmpty refuses keys that are there without a value, such as that of an environment variable which is not set, or
// one that is commented out: in silence they would be off, or none, or 0. A section without a value keeps what it
// was before; one of a variable that is not set would be cleared, with all defaults in it.
func refuseEmpty(path string, value any, before, after reflect.Value) error {
	if off, ok := after.Interface().(configoptional.Optional[OffCPU]); ok {
		if value == nil || off.Get() == nil {
			return nil // it is on with its defaults, or off
		}
		before, after = reflect.ValueOf(NewDefaultOffCPU()), reflect.ValueOf(*off.Get())
	}
	var errs []error
	switch v := value.(type) {
	case nil:
		if after.Kind() != reflect.Struct || !reflect.DeepEqual(before.Interface(), after.Interface()) {
			return fmt.Errorf("%s must have a value, or not be there", path)
		}
	case map[string]any:
		for i := range after.NumField() {
			key, _, _ := strings.Cut(after.Type().Field(i).Tag.Get("mapstructure"), ",")
			inner := key
			if path != "" {
				inner = path + confmap.KeyDelimiter + key
			}
			if value, ok := v[key]; ok && inner != mayBeEmpty {
				errs = append(errs, refuseEmpty(inner, value, before.Field(i), after.Field(i)))
			}
		}
	case []any:
		for i := range v {
			inner := fmt.Sprint(path, confmap.KeyDelimiter, i)
			errs = append(errs, refuseEmpty(inner, v[i], reflect.Zero(after.Type().Elem()), after.Index(i)))
		}
	case string:
		if v == "" && after.Kind() == reflect.Slice {
			return refuseEmpty(path, nil, before, after)
		}
	}
	return errors.Join(errs...)
}
