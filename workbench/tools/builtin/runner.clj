;; Runs the Clojure of a data phase: bb runner.clj FOLDER, with job.json in FOLDER; the answer goes to $OUTBOX.
(require '[cheshire.core :as json] '[clojure.string :as string])
(let [folder (first *command-line-args*)
      job (json/parse-string (slurp (str folder "/job.json")) true)
      kebab (fn [m] (into {} (map (fn [[k v]] [(keyword (string/replace (name k) "_" "-")) v]) m)))
      write (fn [answer] (spit (str (System/getenv "OUTBOX") "/answer.json") (json/generate-string answer)))]
  (try
    (intern 'user 'data (kebab (:data job)))
    (doseq [[k v] (kebab (:names job))] (intern 'user (symbol (name k)) v))
    (binding [*ns* (the-ns 'user)]
      (write {:value (load-string (:code job))}))
    (catch Exception fault
      (write {:error (str (.getSimpleName (class fault)) ": " (.getMessage fault))}))))
