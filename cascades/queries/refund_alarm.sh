# The days come as INPUT_DAYS, each as "orders refunds;". Says which way the report goes.
printf '%s' "$INPUT_DAYS" | awk -v RS=';' -v limit="$INPUT_LIMIT" '
  { orders += $1; refunds += $2 }
  END {
    if (!orders) exit 1
    share = refunds / orders
    route = "calm"
    if (share > limit + 0) route = "alarm"
    printf("{\"_route\": \"%s\", \"orders\": %d, \"refunds\": %d, \"share\": %.3f}\n", route, orders, refunds, share)
  }'
